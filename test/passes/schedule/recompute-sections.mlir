// If steps overlap and a stage is recomputed, the inputs of its forwards are
// loop-carried, and not its stashes.
//
// RUN: chimera-opt %s --chimera-to-scheduled | FileCheck %s

// Stage 0 carries only weights and optimizer state. Stage 1 also carries the
// input of the micro-batch in flight, and the input of the next one. Stage 2
// has nothing in flight, so it carries the same as without recomputes.
// CHECK-LABEL: @early
// CHECK: chimera.prologue
// CHECK: %[[Y0:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0({{.*}} -> !chimera.activation<64>
// CHECK: %[[Y1:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 1 on 0({{.*}} -> !chimera.activation<64>
// CHECK: %[[Z0:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%[[Y0]],
// CHECK: chimera.yield {{.*}}, %[[Y0]], %[[Y1]], %{{[^,]*}}, %{{[^,]*}}, %[[Z0]] : !chimera.weights<64>, !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.activation<64>, !chimera.activation<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.activation<64>

// A recompute reads the same version of weights as its forward and its
// backward. If the micro-batch is in flight, the recompute reads the
// loop-carried input or loads it again. Otherwise it reads the input that the
// forward of the section reads. An update still comes after its backward.
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

// Only some stages are recomputed, and the others carry stashes. If recomputes
// are fused, the last stage also recomputes, with its forward's labels.
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
