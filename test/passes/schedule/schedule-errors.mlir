// Hand-written steps that differ from those that unroll makes.
//
// RUN: chimera-opt %s --chimera-schedule --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expected a step: run chimera-unroll first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
}

// -----

// expected-error@below {{expected a chimera.order for each worker: run chimera-partition first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// Actions with a stage, pipeline or micro-batch that does not exist, and half
// of a backward that is not cut.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    // expected-error@below {{expected each action of the step once}}
    %e, %se = chimera.forward pipeline 0 stage 0 micro_batch 2147483647 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    // expected-error@below {{expected each action of the step once}}
    %e, %se = chimera.forward pipeline 7 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e, %se = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{expected each action of the step once}}
    %r = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 (%se, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_stash<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// An action occurs twice.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e, %se = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{expected each action of the step once}}
    %f, %sf = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
  // expected-error@below {{expected every action of the step: run chimera-unroll first}}
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    // expected-error@below {{expected a pipeline below 1 and a stage below 1}}
    %v = chimera.copy pipeline 0 stage 65536 (%w) : !chimera.weights<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    %z = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected a pipeline below 1 and a stage below 1}}
    %a:2 = chimera.optimizer_step pipeline 9 stage 0 (%w, %o, %z) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The step already has messages.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    // expected-error@below {{expected an op of an unrolled step}}
    %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 :
        !chimera.arriving<!chimera.activation<1>>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A backward uses the stash of a later forward. In the new order, MLIR's
// dominance check finds this.
chimera.pipeline @p stages(1) micro_batches(2) schedule("1f1b") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0, 1]
  chimera.order 0 "F0 B0 F1 B1"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e0, %s0 = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %t1 = chimera.load pipeline 0 stage 0 micro_batch 1 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 0 stage 0 micro_batch 1 : !chimera.labels<1>
    // expected-note@below {{operand defined here (op in the same block)}}
    %e1, %s1 = chimera.forward pipeline 0 stage 0 micro_batch 1 (%t1, %w, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    // expected-error@below {{operand #0 does not dominate this use}}
    %g0 = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s1, %e0, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %g1 = chimera.backward pipeline 0 stage 0 micro_batch 1 (%s0, %e1, %w, %g0) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
