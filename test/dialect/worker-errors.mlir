// RUN: chimera-opt %s --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expects parent op 'chimera.pipeline'}}
chimera.worker 0 holds [] { chimera.yield }

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{attribute 'index' failed to satisfy constraint}}
  chimera.worker -1 holds [] { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{'chimera.worker' op expected a chimera.yield at its end}}
  chimera.worker 0 holds [] { "other"() : () -> () }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{failed to verify constraint: region with 1 blocks}}
  "chimera.worker"() ({}, {}, {}) {index = 0 : i32, holds = array<i32>} : () -> ()
}

// -----

// Two numbers in holds name a replica. Each replica has two arguments.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected weights and optimizer state for each replica that holds lists, got 2 arguments for 0 replicas}}
  chimera.worker 0 holds [0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected each replica's weights, optimizer state, stashes and activations as arguments, got '!chimera.weights<1>', '!chimera.weights<1>'}}
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.weights<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.weights<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{'chimera.worker' op expected the yielded types to be the arguments'}}
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a buffer for each of 2 arguments, got 1}}
  chimera.worker 0 holds [0, 0] arguments [0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// Only the generic form can write a peak without its instruction.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a peak and its instruction or neither}}
  "chimera.worker"() ({}, { chimera.yield }, {}) {index = 0 : i32, holds = array<i32>,
      peak_bytes = 1 : i64} : () -> ()
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{attribute 'arena_bytes' failed to satisfy constraint: a whole number of at least 0}}
  chimera.worker 0 holds [] arena -1 { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{attribute 'peak_bytes' failed to satisfy constraint}}
  chimera.worker 0 holds [] peak -1 at 0 { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{attribute 'peak_instruction' failed to satisfy constraint}}
  chimera.worker 0 holds [] peak 1 at -1 { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a prologue and an epilogue or neither}}
  chimera.worker 0 holds [] prologue { chimera.yield } step { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected no loop_carried without a prologue}}
  chimera.worker 0 holds [] loop_carried [] { chimera.yield }
}

// -----

// Two versions of weights are loop-carried, so the step needs three buffers.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a buffer for each of 3 arguments, got 2}}
  chimera.worker 0 holds [0, 0] arguments [0, 1] loop_carried [2, 0] prologue {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %w, %o : !chimera.weights<1>, !chimera.weights<1>,
        !chimera.optimizer_state<1>
  } step {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %v, %w, %o : !chimera.weights<1>, !chimera.weights<1>,
        !chimera.optimizer_state<1>
  } epilogue {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// If the step has no prologue, its arguments are weights and optimizer state.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected pairs of weights and optimizer state as arguments without a prologue and an epilogue, got '!chimera.weights<1>', '!chimera.optimizer_state<1>', '!chimera.stash<1>'}}
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %s: !chimera.stash<1>):
    chimera.yield %w, %o, %s : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.stash<1>
  }
}

// -----

// A worker cannot use values from outside. Workers share only channels.
%w = "values"() : () -> !chimera.weights<1>
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-note@below {{required by region isolation constraints}}
  chimera.worker 0 holds [] {
    // expected-error@below {{using value defined outside the region}}
    "other"(%w) : (!chimera.weights<1>) -> ()
    chimera.yield
  }
}

// -----

// expected-error@below {{expects parent op 'chimera.worker'}}
chimera.buffer 0 : !chimera.weights<1> at 0

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [] {
    // expected-error@below {{expected no offset for a stash}}
    chimera.buffer 0 : !chimera.stash<1> at 0
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [] {
    // expected-error@below {{expected no offset for a stash}}
    chimera.buffer 0 : !chimera.weight_stash<1> at 0
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [] {
    // expected-error@below {{expected an offset for anything but a stash}}
    chimera.buffer 0 : !chimera.loss<1>
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [] {
    // expected-error@below {{expected a type with a size, got 'i32'}}
    chimera.buffer 0 : i32 at 0
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [] {
    // expected-error@below {{attribute 'offset' failed to satisfy constraint}}
    chimera.buffer 0 : !chimera.loss<1> at -8
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [] {
    // expected-error@below {{attribute 'index' failed to satisfy constraint}}
    chimera.buffer -1 : !chimera.loss<1> at 0
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [] {
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    // expected-error@below {{expected a worker's buffers before its instructions}}
    chimera.buffer 0 : !chimera.loss<1> at 0
    chimera.yield
  }
}
