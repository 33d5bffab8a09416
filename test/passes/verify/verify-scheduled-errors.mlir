// Wrong scheduled steps, made by hand.
//
// RUN: chimera-opt %s --chimera-verify-scheduled --allow-unregistered-dialect --verify-diagnostics --split-input-file -o /dev/null

// A right step is accepted.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %g) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e) :
        (!chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A right step with two replicas is accepted.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.direction 1 up on [0] micro_batches [1]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %t1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.labels<1>
    %e1, %s1 = chimera.forward pipeline 1 stage 0 micro_batch 1 on 0 (%t1, %v, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g1 = chimera.backward pipeline 1 stage 0 micro_batch 1 on 0 (%s1, %e1, %v) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %r:2 = chimera.all_reduce stage 0 width 1 (%g, %g1) :
        (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>)
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %r#0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %a10, %b10 = chimera.optimizer_step pipeline 1 stage 0 on 0 (%v, %n, %r#1) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e, %e1) :
        (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00, %a10, %b10 : !chimera.weights<1>, !chimera.optimizer_state<1>,
        !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// expected-error@below {{expected a scheduled step: run chimera-schedule first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
}

// -----

// The pipeline is already projected: it has workers instead of a step.
// expected-error@below {{expected a step: run chimera-unroll first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.worker 0 holds [] { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    // expected-error@below {{expected an action to name its worker (on N): write it, or let chimera-schedule order all actions}}
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %g) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e) :
        (!chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    // expected-error@below {{expected a worker below 1, got 1}}
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 1 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %g) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e) :
        (!chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The error names all missing actions.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  // expected-error@below {{forward of stage 0, micro-batch 0 is missing}}
  // expected-error@below {{backward of stage 0, micro-batch 0 is missing}}
  // expected-error@below {{expected an all-reduce of the losses, got none}}
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    // expected-error@below {{expected the updated weights of pipeline 0, stage 0, got the weights of pipeline 0, stage 0 that the step takes}}
    // expected-error@below {{expected the updated optimizer state of pipeline 0, stage 0, got the optimizer state of pipeline 0, stage 0 that the step takes}}
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// An action is on another worker than in the placement.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [1, 0] micro_batches [0]
  // expected-error@below {{forward of stage 1, micro-batch 0 is missing}}
  // expected-error@below {{backward of stage 1, micro-batch 0 is missing}}
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    // expected-error@below {{worker 0: forward of stage 0, micro-batch 0 belongs on worker 1}}
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{worker 0: backward of stage 0, micro-batch 0 belongs on worker 1}}
    // expected-error@below {{expected the input gradient of pipeline 0, stage 1, micro-batch 0, got the loss of pipeline 0, stage 0, micro-batch 0}}
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %g) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    // expected-error@below {{expected the losses of stage 1, the last, got those of stage 0}}
    // expected-error@below {{expected the loss of pipeline 0, stage 1, micro-batch 0, got the loss of pipeline 0, stage 0, micro-batch 0}}
    %losses = chimera.all_reduce stage 0 width 1 (%e) :
        (!chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// There are two copies, but their gradients are not reduced.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") data_parallel(2) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected an all-reduced gradient, got the gradient of one replica}}
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %g) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 2 (%e) :
        (!chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The gradients are not reduced over all copies.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") data_parallel(3) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected width 3, the pipeline's data_parallel, got 2}}
    %r:1 = chimera.all_reduce stage 0 width 2 (%g) :
        (!chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>)
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %r#0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 3 (%e) :
        (!chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The all-reduce leaves out the gradient of the other pipeline.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.direction 1 up on [0] micro_batches [1]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %t1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.labels<1>
    %e1, %s1 = chimera.forward pipeline 1 stage 0 micro_batch 1 on 0 (%t1, %v, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{expected a use of its sum}}
    %g1 = chimera.backward pipeline 1 stage 0 micro_batch 1 on 0 (%s1, %e1, %v) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected a contribution of each of 2 pipelines, got 1}}
    %r:1 = chimera.all_reduce stage 0 width 1 (%g) :
        (!chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>)
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %r#0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e, %e1) :
        (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>
    // expected-error@below {{expected the updated weights of pipeline 1, stage 0}}
    // expected-error@below {{expected the updated optimizer state of pipeline 1, stage 0}}
    chimera.yield %a00, %b00, %v, %n : !chimera.weights<1>, !chimera.optimizer_state<1>,
        !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The all-reduce adds the gradient of one pipeline twice.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.direction 1 up on [0] micro_batches [1]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %t1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.labels<1>
    %e1, %s1 = chimera.forward pipeline 1 stage 0 micro_batch 1 on 0 (%t1, %v, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{expected a use of its sum}}
    %g1 = chimera.backward pipeline 1 stage 0 micro_batch 1 on 0 (%s1, %e1, %v) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected contribution 1 to be the whole sum of pipeline 1, stage 0}}
    %r:2 = chimera.all_reduce stage 0 width 1 (%g, %g) :
        (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>)
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %r#0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %a10, %b10 = chimera.optimizer_step pipeline 1 stage 0 on 0 (%v, %n, %r#1) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e, %e1) :
        (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00, %a10, %b10 : !chimera.weights<1>, !chimera.optimizer_state<1>,
        !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The all-reduce gets a sum without the last micro-batch.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") data_parallel(2) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0, 1]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %t1 = chimera.load pipeline 0 stage 0 micro_batch 1 on 0 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 0 stage 0 micro_batch 1 on 0 : !chimera.labels<1>
    %e1, %s1 = chimera.forward pipeline 0 stage 0 micro_batch 1 on 0 (%t1, %w, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{expected a use of its sum}}
    %g1 = chimera.backward pipeline 0 stage 0 micro_batch 1 on 0 (%s1, %e1, %w, %g) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected contribution 0 to be the whole sum of pipeline 0, stage 0}}
    %r:1 = chimera.all_reduce stage 0 width 2 (%g) :
        (!chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>)
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %r#0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 2 (%e, %e1) :
        (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// No update uses the reduced sum. The update uses a new sum.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") data_parallel(2) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0, 1]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %t1 = chimera.load pipeline 0 stage 0 micro_batch 1 on 0 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 0 stage 0 micro_batch 1 on 0 : !chimera.labels<1>
    %e1, %s1 = chimera.forward pipeline 0 stage 0 micro_batch 1 on 0 (%t1, %w, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g1 = chimera.backward pipeline 0 stage 0 micro_batch 1 on 0 (%s1, %e1, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %r:1 = chimera.all_reduce stage 0 width 2 (%g1) :
        (!chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>)
    // expected-error@below {{expected a use of its sum}}
    %q:1 = chimera.all_reduce stage 0 width 2 (%g) :
        (!chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>)
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %r#0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 2 (%e, %e1) :
        (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// An update uses the gradient of another replica.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.direction 1 up on [0] micro_batches [1]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %t1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.labels<1>
    %e1, %s1 = chimera.forward pipeline 1 stage 0 micro_batch 1 on 0 (%t1, %v, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g1 = chimera.backward pipeline 1 stage 0 micro_batch 1 on 0 (%s1, %e1, %v) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %r:2 = chimera.all_reduce stage 0 width 1 (%g, %g1) :
        (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>)
    // expected-error@below {{expected the gradient of pipeline 0, stage 0}}
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %r#1) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    // expected-error@below {{expected the gradient of pipeline 1, stage 0}}
    %a10, %b10 = chimera.optimizer_step pipeline 1 stage 0 on 0 (%v, %n, %r#0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e, %e1) :
        (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00, %a10, %b10 : !chimera.weights<1>, !chimera.optimizer_state<1>,
        !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// An update uses a gradient of unknown origin, and no op uses the right one.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %z = "gradient"() : () -> !chimera.weight_gradient<1>
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{expected a use of its sum}}
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected the gradient of pipeline 0, stage 0}}
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %z) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e) :
        (!chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00 : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A backward reads the weights of another replica than its forward.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.direction 1 up on [0] micro_batches [1]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %t1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 1 stage 0 micro_batch 1 on 0 : !chimera.labels<1>
    %e1, %s1 = chimera.forward pipeline 1 stage 0 micro_batch 1 on 0 (%t1, %v, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{expected the weights of pipeline 1, stage 0 that the step takes}}
    %g1 = chimera.backward pipeline 1 stage 0 micro_batch 1 on 0 (%s1, %e1, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %r:2 = chimera.all_reduce stage 0 width 1 (%g, %g1) :
        (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>) -> (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>)
    %a00, %b00 = chimera.optimizer_step pipeline 0 stage 0 on 0 (%w, %o, %r#0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %a10, %b10 = chimera.optimizer_step pipeline 1 stage 0 on 0 (%v, %n, %r#1) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    %losses = chimera.all_reduce stage 0 width 1 (%e, %e1) :
        (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield %a00, %b00, %a10, %b10 : !chimera.weights<1>, !chimera.optimizer_state<1>,
        !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
