// Recomputes can be inserted only into some scheduled steps.
//
// RUN: chimera-opt %s --chimera-recompute --verify-diagnostics --split-input-file -o /dev/null

// expected-error@below {{expected 1 stages: run chimera-partition first (--chimera-to-scheduled does), or give all}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") recompute(all)

// -----

// Without a recompute clause the pass requires nothing and changes nothing.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected a step: run chimera-unroll first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") recompute(all) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") recompute(all) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<64>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<64>
    // expected-error@below {{expected an action to name its worker (on N): write it, or let chimera-schedule order all actions}}
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<64>, !chimera.weights<1>, !chimera.labels<64>) ->
        (!chimera.loss<8>, !chimera.stash<1>)
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") recompute(all) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<64>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<64>
    // expected-error@below {{expected a scheduled step without recomputes}}
    %s = chimera.recompute pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<64>, !chimera.weights<1>, !chimera.labels<64>) ->
        !chimera.stash<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The recomputed stage has no backward.
// expected-error@below {{recompute: }}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") recompute(all) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<64>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<64>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<64>, !chimera.weights<1>, !chimera.labels<64>) ->
        (!chimera.loss<8>, !chimera.stash<1>)
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// No forward made this stash.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") recompute(all fused) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<64>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<64>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w, %l) :
        (!chimera.tokens<64>, !chimera.weights<1>, !chimera.labels<64>) ->
        (!chimera.loss<8>, !chimera.stash<1>)
    %x = builtin.unrealized_conversion_cast %e : !chimera.loss<8> to !chimera.stash<1>
    // expected-error@below {{expected a stash that a forward makes and nothing else uses}}
    %h = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0 (%x, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<8>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// Half of a recompute would take half a unit of time.
// expected-error@below {{2}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") recompute(all) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 2>
  chimera.direction 0 down on [0] micro_batches [0] backward_parts 2
  chimera.step { chimera.yield }
}
