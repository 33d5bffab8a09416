// Steps that overlap, with recomputes: the inputs of forwards are loop-carried
// instead of their stashes.
//
// RUN: chimera-opt %s --chimera-to-scheduled | FileCheck %s

// Stage 0 carries only versions and optimizer state. Stage 1 carries the input
// of the micro-batch in flight, then that of the next one. Stage 2, which has
// nothing in flight, carries the same as without recomputes.
// CHECK-LABEL: @early
// CHECK: chimera.prologue
// CHECK: %[[Y0:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0({{.*}} -> !chimera.activation<64>
// CHECK: %[[Y1:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 1 on 0({{.*}} -> !chimera.activation<64>
// CHECK: %[[Z0:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%[[Y0]],
// CHECK: chimera.yield {{.*}}, %[[Y0]], %[[Y1]], %{{[^,]*}}, %{{[^,]*}}, %[[Z0]] : !chimera.weights<64>, !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.activation<64>, !chimera.activation<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.activation<64>

// A recompute reads the same version as its forward and its backward. For a
// micro-batch in flight it uses the loop-carried input, or loads it again. An
// input that its own section has read is used directly. An update still follows
// its backward.
// CHECK: chimera.step
// CHECK-NEXT: (%[[V0:[a-z0-9]*]]: !chimera.weights<64>, %[[V1:[a-z0-9]*]]: !chimera.weights<64>, %[[V2:[a-z0-9]*]]: !chimera.weights<64>, {{[^,]*}}, %[[U0:[a-z0-9]*]]: !chimera.weights<64>, %[[U1:[a-z0-9]*]]: !chimera.weights<64>, {{[^,]*}}, %[[A0:[a-z0-9]*]]: !chimera.activation<64>, %[[A1:[a-z0-9]*]]: !chimera.activation<64>,
// CHECK: %[[T2:.*]] = chimera.load pipeline 0 stage 0 micro_batch 2 on 0
// CHECK-NEXT: %[[Y2:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 2 on 0(%[[T2]], %[[V2]])
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 1 on 1(%[[A1]], %[[U1]])
// CHECK: %[[T0:.*]] = chimera.load pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NEXT: %[[S0:.*]] = chimera.recompute pipeline 0 stage 0 micro_batch 0 on 0(%[[T0]], %[[V0]])
// CHECK-NEXT: %[[R0:.*]] = chimera.recompute pipeline 0 stage 1 micro_batch 0 on 1(%[[A0]], %[[U0]])
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 0 on 1(%[[R0]], {{.*}}, %[[U0]])
// CHECK-NEXT: %[[U2:.*]], %{{.*}} = chimera.optimizer_step pipeline 0 stage 1 micro_batch 0 on 1(%[[U1]],
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 0 on 0(%[[S0]], {{.*}}, %[[V0]])
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 micro_batch 0 on 0(%[[V2]],
// CHECK: chimera.recompute pipeline 0 stage 1 micro_batch 1 on 1(%[[A1]], %[[U1]])
// CHECK: chimera.recompute pipeline 0 stage 0 micro_batch 1 on 0(%{{.*}}, %[[V1]])
// CHECK: chimera.recompute pipeline 0 stage 1 micro_batch 2 on 1(%[[Y2]], %[[U2]])
// CHECK: chimera.recompute pipeline 0 stage 0 micro_batch 2 on 0(%[[T2]], %[[V2]])
// CHECK: chimera.epilogue
// CHECK-COUNT-6: chimera.recompute
// CHECK-NOT: chimera.recompute
chimera.pipeline @early stages(3) micro_batches(3) schedule("pipedream") recompute(all)

// Some stages: the others carry stashes. Fused, the last stage recomputes too,
// with the labels that its forward read.
// CHECK-LABEL: @some
// CHECK: chimera.yield {{.*}} : !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.stash<64>, !chimera.stash<64>, !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.activation<64>, !chimera.activation<64>, !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.activation<64>
// CHECK: chimera.step
// CHECK-NEXT: {{.*}}, %[[W0:[a-z0-9]*]]: !chimera.weights<64>, {{[^,]*}}, {{[^,]*}}, %[[A:[a-z0-9]*]]: !chimera.activation<64>)
// CHECK: %[[L:.*]] = chimera.load pipeline 0 stage 2 micro_batch 0 on 2
// CHECK-NEXT: %[[E:.*]] = chimera.forward pipeline 0 stage 2 micro_batch 0 on 2(%[[A]], %[[W0]], %[[L]])
// CHECK-NEXT: %[[S:.*]] = chimera.recompute pipeline 0 stage 2 micro_batch 0 on 2(%[[A]], %[[W0]], %[[L]])
// CHECK-NEXT: chimera.input_gradient pipeline 0 stage 2 micro_batch 0 on 2(%[[S]], %[[E]], %[[W0]])
// CHECK: %[[R:.*]] = chimera.recompute pipeline 0 stage 1 micro_batch 0 on 1
// CHECK: chimera.input_gradient pipeline 0 stage 1 micro_batch 0 on 1(%[[R]],
chimera.pipeline @some stages(3) micro_batches(3) schedule("pipedream-2bw") recompute([1, 2] fused) split_backward
