// Allocated IR with errors, made by hand. A program file could not express it.
//
// RUN: chimera-translate --chimera-to-program %s --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expected 1 stages: run chimera-partition first (--chimera-to-scheduled does), or give all}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected a chimera.model @m, found none}}
chimera.pipeline @p of @m stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
}

// -----

// expected-error@below {{expected 1 workers, got 0: run the phases up to chimera-allocate first (--chimera-to-allocated does, and so does chimera-compile)}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  // expected-error@below {{expected worker 0 next, in the order of workers}}
  chimera.worker 1 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.worker 0 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
  // expected-error@below {{expected worker 1 next, in the order of workers}}
  chimera.worker 0 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The worker is projected, but not allocated.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  // expected-error@below {{expected an allocated worker: run chimera-allocate first}}
  chimera.worker 0 holds [] { chimera.yield }
}

// -----

// A program file has 16 bits for the numbers of a replica. These numbers would
// become pipeline 0 and stage 0.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  // expected-error@below {{expected a pipeline below 1 and a stage below 1, got 65536 and 0}}
  chimera.worker 0 holds [65536, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.worker 0 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    // expected-error@below {{expected a pipeline below 1 and a stage below 1, got 0 and 65536}}
    %t = chimera.load pipeline 0 stage 65536 micro_batch 0 buffers [0] : !chimera.tokens<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.worker 0 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    // expected-error@below {{expected an instruction}}
    "other"() : () -> ()
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.worker 0 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    // expected-error@below {{expected a buffer for each value: run chimera-allocate first}}
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.worker 0 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [3] : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [5] : !chimera.labels<1>
    %e, %q = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [6, 4] (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %z = chimera.backward pipeline 0 stage 0 micro_batch 0 buffers [2] (%q, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected width 1, the pipeline's data_parallel, got 2}}
    %r = chimera.all_reduce_start stage 0 width 2 workers [0] keys [0] buffers [2] (%z) :
        (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// Two starts of one all-reduce list different gradients.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.worker 0 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [3] : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [5] : !chimera.labels<1>
    %e, %q = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [6, 4] (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %z = chimera.backward pipeline 0 stage 0 micro_batch 0 buffers [2] (%q, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %r = chimera.all_reduce_start stage 0 width 1 workers [0] keys [0] buffers [2] (%z) :
        (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>
    // expected-error@below {{expected the same contributions as in other starts of stage 0}}
    %s = chimera.all_reduce_start stage 0 width 1 workers [0] keys [7] buffers [2] (%z) :
        (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
