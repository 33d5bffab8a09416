// Workers with wrong buffers, made by hand.
//
// RUN: chimera-opt %s --chimera-verify-allocated --verify-diagnostics --split-input-file -o /dev/null

// expected-error@below {{expected workers: run chimera-project first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    // expected-error@below {{expected buffers in the order of their index, got 1 after 0 others}}
    chimera.buffer 1 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// Neither arguments nor results have buffers, so the worker is not allocated.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a buffer for each result}}
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    // expected-error@below {{expected a buffer for each result}}
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The arguments name buffers that do not exist.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a buffer for each result}}
  chimera.worker 0 holds [0, 0] arguments [-1, 2147483647] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    // expected-error@below {{expected a buffer for each result}}
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [2] : !chimera.tokens<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// Two results have only one buffer.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.tokens<1> at 128
    chimera.buffer 3 : !chimera.activation<1> at 192
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [2] : !chimera.tokens<1>
    // expected-error@below {{expected a buffer for each result}}
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [3] (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    // expected-error@below {{expected a buffer of '!chimera.tokens<1>', got buffer 1 of '!chimera.optimizer_state<1>'}}
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [1] : !chimera.tokens<1>
    // expected-error@below {{expected its operand in buffer 1, whose bytes a later value has overwritten}}
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a buffer of '!chimera.weights<1>', got buffer 1 of '!chimera.optimizer_state<1>'}}
  // expected-error@below {{expected a buffer of '!chimera.optimizer_state<1>', got buffer 0 of '!chimera.weights<1>'}}
  chimera.worker 0 holds [0, 0] arguments [1, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The tokens are overwritten before they are read.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.tokens<1> at 128
    chimera.buffer 3 : !chimera.activation<1> at 192
    chimera.buffer 4 : !chimera.stash<1>
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [2] : !chimera.tokens<1>
    %u = chimera.load pipeline 0 stage 0 micro_batch 1 buffers [2] : !chimera.tokens<1>
    // expected-error@below {{expected its operand in buffer 2, whose bytes a later value has overwritten}}
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [3, 4] (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The tokens are overwritten through another buffer that shares a byte with
// their buffer.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.tokens<4> at 128
    chimera.buffer 3 : !chimera.activation<1> at 192
    chimera.buffer 4 : !chimera.stash<1>
    chimera.buffer 5 : !chimera.labels<4> at 131
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [2] : !chimera.tokens<4>
    %u = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [5] : !chimera.labels<4>
    // expected-error@below {{expected its operand in buffer 2, whose bytes a later value has overwritten}}
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [3, 4] (%t, %w) :
        (!chimera.tokens<4>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A value overwrites the weights, which are needed later.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.tokens<1> at 0
    chimera.buffer 3 : !chimera.activation<1> at 192
    chimera.buffer 4 : !chimera.stash<1>
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [2] : !chimera.tokens<1>
    // expected-error@below {{expected its operand in buffer 0, whose bytes a later value has overwritten}}
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [3, 4] (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    // expected-error@below {{expected its operand in buffer 0, whose bytes a later value has overwritten}}
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A send owns its buffer until its wait, so no other value may overwrite it.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.tokens<1> at 128
    chimera.buffer 3 : !chimera.activation<1> at 192
    chimera.buffer 4 : !chimera.stash<1>
    chimera.buffer 5 : !chimera.labels<1> at 192
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [2] : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [3, 4] (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 : !chimera.activation<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [5] : !chimera.labels<1>
    // expected-error@below {{expected its operand in buffer 3, whose bytes a later value has overwritten}}
    chimera.wait %p : !chimera.sending
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The same holds for a send in a group, and for a receive.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.tokens<1> at 128
    chimera.buffer 3 : !chimera.activation<1> at 192
    chimera.buffer 4 : !chimera.stash<1>
    chimera.buffer 5 : !chimera.labels<1> at 192
    chimera.buffer 6 : !chimera.gradient<1> at 256
    chimera.buffer 7 : !chimera.labels<1> at 256
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [2] : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [3, 4] (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    %g:2 = chimera.group {
      %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 : !chimera.activation<1>
      %q = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 buffers [6] : !chimera.arriving<!chimera.gradient<1>>
      chimera.yield %p, %q : !chimera.sending, !chimera.arriving<!chimera.gradient<1>>
    } : !chimera.sending, !chimera.arriving<!chimera.gradient<1>>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [5] : !chimera.labels<1>
    %k = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [7] : !chimera.labels<1>
    // expected-error@below {{expected its operand in buffer 3, whose bytes a later value has overwritten}}
    chimera.wait %g#0 : !chimera.sending
    // expected-error@below {{expected its operand in buffer 6, whose bytes a later value has overwritten}}
    %d = chimera.wait %g#1 buffers [6] : !chimera.arriving<!chimera.gradient<1>> -> !chimera.gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A sum has its own buffer. The gradients that it adds are needed until its
// wait.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.weight_gradient<1> at 128
    chimera.buffer 3 : !chimera.weight_gradient<1> at 192
    chimera.buffer 4 : !chimera.labels<1> at 128
    chimera.buffer 5 : !chimera.tokens<1> at 256
    chimera.buffer 6 : !chimera.stash<1>
    chimera.buffer 7 : !chimera.labels<1> at 320
    chimera.buffer 8 : !chimera.loss<1> at 384
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [5] : !chimera.tokens<1>
    %n = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [7] : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [8, 6] (%t, %w, %n) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 buffers [2] (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %r = chimera.all_reduce_start stage 0 width 1 workers [0, 0] keys [0, 1] buffers [3] (%g, %g) :
        (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [4] : !chimera.labels<1>
    // expected-error@below {{expected its operand in buffer 2, whose bytes a later value has overwritten}}
    %a = chimera.wait %r buffers [3] : !chimera.arriving<!chimera.weight_gradient<1>> -> !chimera.weight_gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The worker yields its states in other buffers than the next step reads.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0, 1, 0] arguments [0, 1, 2, 3] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.weights<1> at 128
    chimera.buffer 3 : !chimera.optimizer_state<1> at 192
    // expected-error@below {{expected value 0 in buffer 0, where the next section takes it}}
    // expected-error@below {{expected value 2 in buffer 2, where the next section takes it}}
    chimera.yield %w1, %o, %w, %o1 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The pieces of a gradient are not consecutive in its bytes, and the gradient
// is used while its pieces are.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    chimera.buffer 2 : !chimera.weight_gradient<16> at 128
    chimera.buffer 3 : !chimera.weight_gradient<8> at 128
    chimera.buffer 4 : !chimera.weight_gradient<8> at 136
    chimera.buffer 5 : !chimera.tokens<1> at 256
    chimera.buffer 6 : !chimera.stash<1>
    chimera.buffer 7 : !chimera.labels<1> at 320
    chimera.buffer 8 : !chimera.loss<1> at 384
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [5] : !chimera.tokens<1>
    %n = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [7] : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [8, 6] (%t, %w, %n) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 buffers [2] (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<16>
    // expected-error@below {{expected piece 0 at 128, in the memory of the whole, got 136}}
    // expected-error@below {{expected piece 1 at 136, in the memory of the whole, got 128}}
    %b:2 = chimera.split pipeline 0 stage 0 buffers [4, 3] (%g) : (!chimera.weight_gradient<16>) ->
        (!chimera.weight_gradient<8>, !chimera.weight_gradient<8>)
    // expected-error@below {{expected its operand in buffer 2, whose bytes a later value has overwritten}}
    %c:2 = chimera.split pipeline 0 stage 0 buffers [3, 4] (%g) : (!chimera.weight_gradient<16>) ->
        (!chimera.weight_gradient<8>, !chimera.weight_gradient<8>)
    // expected-error@below {{expected piece 1 at 136, in the memory of the whole, got 128}}
    %j = chimera.join pipeline 0 stage 0 buffers [2] (%c#0, %c#0) :
        (!chimera.weight_gradient<8>, !chimera.weight_gradient<8>) -> !chimera.weight_gradient<16>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
