// Recomputes come before backwards. A forward has no stash for a backward that
// has a recompute.
//
// RUN: chimera-opt %s --chimera-to-scheduled --split-input-file | FileCheck %s
// RUN: chimera-opt %s --chimera-to-communicated --split-input-file | FileCheck %s --check-prefix=COMMUNICATED

// Early recomputes read the forward's operands, on the last stage also its
// labels. There each backward directly follows its forward, so it uses the
// stash. The slots are dropped, and gradients are summed as before.
// CHECK-LABEL: chimera.pipeline @early
// CHECK-NOT: slot {{[0-9]}}
// CHECK: %[[T:.*]] = chimera.load pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NEXT: %[[Y:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0(%[[T]], %[[W:.*]]) : {{.*}} -> !chimera.activation<64>
// CHECK-NOT: slot {{[0-9]}}
// CHECK: %{{.*}}, %[[S1:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%[[Y]],
// CHECK-NEXT: %[[S0:.*]] = chimera.recompute pipeline 0 stage 0 micro_batch 0 on 0(%[[T]], %[[W]]) : (!chimera.tokens<64>, !chimera.weights<64>) -> !chimera.stash<64>
// CHECK: %{{.*}}, %[[D:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 0 on 1(%[[S1]],
// CHECK: %[[G:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0(%[[S0]], %[[D]],
// CHECK-NOT: recompute pipeline 0 stage 1
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 1 on 0({{.*}}, %[[G]])
//
// An early recompute does not wait for the gradient.
// COMMUNICATED-LABEL: chimera.pipeline @early
// COMMUNICATED: chimera.recompute pipeline 0 stage 0 micro_batch 0
// COMMUNICATED: %[[A:.*]] = chimera.wait {{.*}} -> !chimera.gradient<64>
// COMMUNICATED-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 0 on 0(%{{.*}}, %[[A]],
chimera.pipeline @early stages(2) micro_batches(2) schedule("1f1b") recompute(all)

// -----

// Fused recomputes come after the wait for the gradient, and are never left
// out. The wait for a send comes after the wait for its receive. A recompute
// reads the input that the forward received, so the input is not sent again.
// CHECK-LABEL: chimera.pipeline @fused
// CHECK: %[[L:.*]] = chimera.load pipeline 0 stage 1 micro_batch 0 on 1 : !chimera.labels<64>
// CHECK: %[[E:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%[[X:.*]], %[[W:.*]], %[[L]]) : {{.*}} -> !chimera.loss<8>
// CHECK: %[[S:.*]] = chimera.recompute pipeline 0 stage 1 micro_batch 0 on 1(%[[X]], %[[W]], %[[L]])
// CHECK-NEXT: chimera.input_gradient pipeline 0 stage 1 micro_batch 0 on 1(%[[S]], %[[E]],
// COMMUNICATED-LABEL: chimera.pipeline @fused
// COMMUNICATED: %[[P0:.*]] = chimera.post_send {{.*}} to 1 pipeline 0 stage 0 micro_batch 0 on 0
// COMMUNICATED: %[[X:.*]] = chimera.wait {{.*}} -> !chimera.activation<64>
// COMMUNICATED-NEXT: chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%[[X]],
// COMMUNICATED-NEXT: chimera.wait %[[P0]] on 0
// COMMUNICATED-NEXT: chimera.recompute pipeline 0 stage 1 micro_batch 0 on 1(%[[X]],
// COMMUNICATED: %[[P:.*]] = chimera.post_send {{.*}} to 0 pipeline 0 stage 1 micro_batch 0 on 1 : !chimera.gradient<64>
// COMMUNICATED-NEXT: %[[A:.*]] = chimera.wait {{.*}} on 0 : {{.*}} -> !chimera.gradient<64>
// COMMUNICATED-NEXT: %[[S:.*]] = chimera.recompute pipeline 0 stage 0 micro_batch 0 on 0
// COMMUNICATED-NEXT: chimera.wait %[[P]] on 1
// COMMUNICATED: chimera.input_gradient pipeline 0 stage 0 micro_batch 0 on 0(%[[S]], %[[A]],
chimera.pipeline @fused stages(2) micro_batches(2) schedule("1f1b") recompute(all fused) split_backward

// -----

// Only one stage is recomputed.
// CHECK-LABEL: chimera.pipeline @some
// CHECK-COUNT-3: chimera.recompute pipeline 0 stage 1
// CHECK-NOT: chimera.recompute
chimera.pipeline @some stages(3) micro_batches(3) schedule("gpipe") recompute([1])

// -----

// After a forward of two micro-batches, the first backward uses its stash.
// CHECK-LABEL: chimera.pipeline @doubled
// CHECK: %[[E:.*]]:2, %[[S:.*]] = chimera.forward pipeline 0 stage 3 micro_batch 0 count 2 on 3(%[[X:.*]], %[[W:.*]], %[[L:.*]]) :
// CHECK: chimera.backward pipeline 0 stage 3 micro_batch 0 on 3(%[[S]], %[[E]]#0,
// CHECK: %[[R:.*]] = chimera.recompute pipeline 0 stage 3 micro_batch 1 on 3(%[[X]], %[[W]], %[[L]]) : (!chimera.activation<128>, !chimera.weights<64>, !chimera.labels<128>) -> !chimera.stash<64>
// CHECK: chimera.backward pipeline 0 stage 3 micro_batch 1 on 3(%[[R]], %[[E]]#1,
// COMMUNICATED-LABEL: chimera.pipeline @doubled
// COMMUNICATED: chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 count 2 on 1 : <!chimera.activation<128>>
// COMMUNICATED-NEXT: chimera.post_send %{{.*}} to 1 pipeline 0 stage 0 micro_batch 0 count 2 on 0 : !chimera.activation<128>
chimera.pipeline @doubled stages(4) micro_batches(8)
    schedule("chimera", {concatenation = "doubling"}) recompute(all)

// -----

// Each half of a backward has its own recompute, which reads the whole input.
// CHECK-LABEL: chimera.pipeline @halved
// CHECK: chimera.recompute pipeline 0 stage 0 micro_batch 0 part 0 of 2 on 0(%[[T:.*]], %{{.*}}) : (!chimera.tokens<64>, !chimera.weights<64>) -> !chimera.stash<32>
// CHECK: chimera.recompute pipeline 0 stage 0 micro_batch 0 part 1 of 2 on 0(%[[T]],
// COMMUNICATED-LABEL: chimera.pipeline @halved
// COMMUNICATED: chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 part 0 of 2 on 0 : <!chimera.gradient<32>>
// COMMUNICATED-NEXT: chimera.post_send %{{.*}} to 0 pipeline 0 stage 1 micro_batch 0 part 0 of 2 on 1 : !chimera.gradient<32>
chimera.pipeline @halved stages(4) micro_batches(4)
    schedule("chimera", {concatenation = "halving"}) recompute(all)
