// RUN: chimera-opt %s --chimera-project --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expected a step: run chimera-unroll first}}
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
}

// -----

// The step has the weights and state of too few replicas.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  // expected-error@below {{expected weights and optimizer state of 2 replicas as arguments, got 0}}
  chimera.step { chimera.yield }
}

// -----

chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w0: !chimera.weights<1>, %o0: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    // expected-error@below {{expected an op that names its worker: run chimera-synchronise first}}
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    chimera.yield %w0, %o0, %w1, %o1 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// An op has no worker.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w0: !chimera.weights<1>, %o0: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    // expected-error@below {{expected an op that names its worker: run chimera-synchronise first}}
    %g = "gradient"() : () -> !chimera.weight_gradient<1>
    %r = chimera.all_reduce stage 0 width 2 (%g) : (!chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    chimera.yield %w0, %o0, %w1, %o1 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w0: !chimera.weights<1>, %o0: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    // expected-error@below {{expected a worker below 2, got 2147483647}}
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 2147483647 : !chimera.tokens<1>
    chimera.yield %w0, %o0, %w1, %o1 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// An action uses a value of another worker, which was not sent.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w0: !chimera.weights<1>, %o0: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w0) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    // expected-error@below {{expected values of worker 1, got one of worker 0: run chimera-communicate and chimera-synchronise first}}
    %x, %r = chimera.forward pipeline 0 stage 1 micro_batch 0 on 1 (%y, %w1) :
        (!chimera.activation<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    chimera.yield %w0, %o0, %w1, %o1 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// An action uses the weights of another worker.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w0: !chimera.weights<1>, %o0: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    // expected-error@below {{expected values of worker 0, got one of worker 1: run chimera-communicate and chimera-synchronise first}}
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w1) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    chimera.yield %w0, %o0, %w1, %o1 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A post in a group uses a value of another worker.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w0: !chimera.weights<1>, %o0: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w0) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    %g = chimera.group on 1 {
      // expected-error@below {{expected values of worker 1, got one of worker 0: run chimera-communicate and chimera-synchronise first}}
      %p = chimera.post_send %y to 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.activation<1>
      chimera.yield %p : !chimera.sending
    } : !chimera.sending
    chimera.yield %w0, %o0, %w1, %o1 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The step yields its weights and states in another order.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w0: !chimera.weights<1>, %o0: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    // expected-error@below {{expected worker 0 to yield its own state, got one of worker 1}}
    chimera.yield %w1, %o1, %w0, %o0 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
