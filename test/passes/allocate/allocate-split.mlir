// RUN: chimera-opt %s --chimera-allocate --chimera-verify-allocated --split-input-file | FileCheck %s

// An input gradient frees the stash and makes the weight stash. The peak has
// only the larger of the two.
// CHECK-LABEL: chimera.pipeline @lesser
// CHECK: peak 592 at
// CHECK: chimera.buffer {{[0-9]+}} : !chimera.weight_stash<32>{{$}}
chimera.pipeline @lesser stages(1) micro_batches(1) schedule("gpipe") split_backward {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<128>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<64>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<64>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<64>, !chimera.weights<64>, !chimera.labels<64>) ->
        (!chimera.loss<8>, !chimera.stash<264>)
    %r = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 (%s, %e, %w) :
        (!chimera.stash<264>, !chimera.loss<8>, !chimera.weights<64>) ->
        !chimera.weight_stash<32>
    %g1 = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 (%r, %w) :
        (!chimera.weight_stash<32>, !chimera.weights<64>) ->
        !chimera.weight_gradient<64>
    %w1, %o1 = chimera.optimizer_step pipeline 0 stage 0 (%w, %o, %g1) :
        !chimera.weights<64>, !chimera.optimizer_state<128>,
        !chimera.weight_gradient<64>
    chimera.yield %w1, %o1 : !chimera.weights<64>, !chimera.optimizer_state<128>
  }
}

// -----

// CHECK-LABEL: chimera.pipeline @greater
// CHECK: peak 1256 at 4
chimera.pipeline @greater stages(1) micro_batches(1) schedule("gpipe") split_backward {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<128>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<64>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<64>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<64>, !chimera.weights<64>, !chimera.labels<64>) ->
        (!chimera.loss<8>, !chimera.stash<264>)
    %r = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 (%s, %e, %w) :
        (!chimera.stash<264>, !chimera.loss<8>, !chimera.weights<64>) ->
        !chimera.weight_stash<1000>
    %g1 = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 (%r, %w) :
        (!chimera.weight_stash<1000>, !chimera.weights<64>) ->
        !chimera.weight_gradient<64>
    %w1, %o1 = chimera.optimizer_step pipeline 0 stage 0 (%w, %o, %g1) :
        !chimera.weights<64>, !chimera.optimizer_state<128>,
        !chimera.weight_gradient<64>
    chimera.yield %w1, %o1 : !chimera.weights<64>, !chimera.optimizer_state<128>
  }
}
