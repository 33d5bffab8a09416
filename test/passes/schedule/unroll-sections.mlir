// If steps overlap: which version of weights an action reads, where updates
// are, and which values are loop-carried.
//
// RUN: chimera-opt %s --chimera-to-unrolled | FileCheck %s

// There is an update after every backward. Stage 0 has 3 versions and is 2
// forwards ahead. Stage 1 has 2 versions, and stage 2 has one.
// CHECK-LABEL: @each
// CHECK: chimera.prologue
// CHECK-NEXT: (%[[W0:.*]]: !chimera.weights<64>, %[[O0:.*]]: !chimera.optimizer_state<128>, %[[W1:.*]]: !chimera.weights<64>, %[[O1:.*]]: !chimera.optimizer_state<128>, %[[W2:.*]]: !chimera.weights<64>, %[[O2:.*]]: !chimera.optimizer_state<128>)
// CHECK-NEXT: %[[C0:.*]] = chimera.copy pipeline 0 stage 0(%[[W0]])
// CHECK-NEXT: %[[C1:.*]] = chimera.copy pipeline 0 stage 0(%[[W0]])
// CHECK-NEXT: %[[C2:.*]] = chimera.copy pipeline 0 stage 1(%[[W1]])
// CHECK: %[[Y0:.*]], %[[S0:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0({{.*}}, %[[C0]])
// CHECK: %[[Y1:.*]], %[[S1:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 1({{.*}}, %[[C1]])
// CHECK: %[[Z0:.*]], %[[T0:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 0(%[[Y0]], %[[C2]])
// CHECK-NEXT: chimera.yield %[[C0]], %[[C1]], %[[W0]], %[[O0]], %[[S0]], %[[S1]], %[[C2]], %[[W1]], %[[O1]], %[[T0]], %[[Y1]], %[[W2]], %[[O2]], %[[Z0]] :

// On every stage, the forward and the backward of micro-batch m read version m.
// The micro-batches 3 and 4, of the next step, read the versions that the
// updates of micro-batches 0 and 1 make.
// CHECK: chimera.step
// CHECK-NEXT: (%[[V0:[a-z0-9]*]]: {{[^,]*}}, %[[V1:[a-z0-9]*]]: {{[^,]*}}, %[[V2:[a-z0-9]*]]: !chimera.weights<64>, %[[P0:[a-z0-9]*]]: !chimera.optimizer_state<128>, %[[A0:[a-z0-9]*]]: !chimera.stash<64>, %[[A1:[a-z0-9]*]]: !chimera.stash<64>, %[[U0:[a-z0-9]*]]: {{[^,]*}}, %[[U1:[a-z0-9]*]]: !chimera.weights<64>, %[[P1:[a-z0-9]*]]: !chimera.optimizer_state<128>, %[[B0:[a-z0-9]*]]: !chimera.stash<64>, %[[X1:[a-z0-9]*]]: !chimera.activation<64>, %[[Q0:[a-z0-9]*]]: !chimera.weights<64>, %[[P2:[a-z0-9]*]]: !chimera.optimizer_state<128>, %[[X0:[a-z0-9]*]]: !chimera.activation<64>)
// CHECK: %[[Y2:.*]], %[[A2:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 2({{.*}}, %[[V2]])
// CHECK: %[[Z1:.*]], %[[B1:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 1(%[[X1]], %[[U1]])
// CHECK: %[[L0:.*]], %[[D0:.*]] = chimera.forward pipeline 0 stage 2 micro_batch 0(%[[X0]], %[[Q0]],
// CHECK: %[[G2:.*]], %[[I2:.*]] = chimera.backward pipeline 0 stage 2 micro_batch 0(%[[D0]], %[[L0]], %[[Q0]])
// CHECK-NEXT: %[[Q1:.*]], %[[P3:.*]] = chimera.optimizer_step pipeline 0 stage 2 micro_batch 0(%[[Q0]], %[[P2]], %[[G2]])
// CHECK: %[[G1:.*]], %[[I1:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 0(%[[B0]], %[[I2]], %[[U0]])
// CHECK-NEXT: %[[U2:.*]], %[[P4:.*]] = chimera.optimizer_step pipeline 0 stage 1 micro_batch 0(%[[U1]], %[[P1]], %[[G1]])
// CHECK: %[[G0:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 0(%[[A0]], %[[I1]], %[[V0]])
// CHECK-NEXT: %[[V3:.*]], %[[P5:.*]] = chimera.optimizer_step pipeline 0 stage 0 micro_batch 0(%[[V2]], %[[P0]], %[[G0]])
// CHECK: %[[Y3:.*]], %[[A3:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 3({{.*}}, %[[V3]])
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 2(%[[Y2]], %[[U2]])
// CHECK: chimera.forward pipeline 0 stage 2 micro_batch 1(%[[Z1]], %[[Q1]],
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 1(%[[B1]], {{.*}}, %[[U1]])
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 1(%[[A1]], {{.*}}, %[[V1]])
// CHECK-NEXT: %[[V4:.*]], %{{.*}} = chimera.optimizer_step pipeline 0 stage 0 micro_batch 1(%[[V3]], %[[P5]],
// CHECK: %[[Y4:.*]], %[[A4:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 4({{.*}}, %[[V4]])
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 2({{.*}}, %[[U2]])
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 2(%[[A2]], {{.*}}, %[[V2]])
// CHECK-NEXT: %[[V5:.*]], %[[P6:.*]] = chimera.optimizer_step pipeline 0 stage 0 micro_batch 2(%[[V4]],
// CHECK: chimera.yield %[[V3]], %[[V4]], %[[V5]], %[[P6]], %[[A3]], %[[A4]], {{.*}}, %[[Y4]],

// The epilogue has no forwards of another step. It yields only weights and
// optimizer state.
// CHECK: chimera.epilogue
// CHECK-NOT: micro_batch 3
// CHECK: chimera.yield %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} : !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.weights<64>, !chimera.optimizer_state<128>
chimera.pipeline @each stages(3) micro_batches(3) schedule("pipedream")

// There is one update per step, and 2 versions on every stage. Micro-batches of
// this step read the older version, and those of the next step the newer one.
// CHECK-LABEL: @step
// CHECK: chimera.step
// CHECK-NEXT: (%[[V0:[a-z0-9]*]]: !chimera.weights<64>, %[[V1:[a-z0-9]*]]: !chimera.weights<64>, %[[P0:[a-z0-9]*]]: !chimera.optimizer_state<128>, %[[A0:[a-z0-9]*]]: !chimera.stash<64>, %[[U0:[a-z0-9]*]]: !chimera.weights<64>, %[[U1:[a-z0-9]*]]: !chimera.weights<64>,
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 1({{.*}}, %[[V0]])
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 0({{.*}}, %[[U0]],
// CHECK: chimera.input_gradient pipeline 0 stage 1 micro_batch 0({{.*}}, %[[U0]])
// CHECK: chimera.weight_gradient pipeline 0 stage 1 micro_batch 0({{.*}}, %[[U0]])
// CHECK: chimera.input_gradient pipeline 0 stage 0 micro_batch 0(%[[A0]], {{.*}}, %[[V0]])
// CHECK: %[[G0:.*]] = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0({{.*}}, %[[V0]])
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 2({{.*}}, %[[V1]])
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 1({{.*}}, %[[U0]],
// CHECK: %[[G1:.*]] = chimera.weight_gradient pipeline 0 stage 0 micro_batch 1({{.*}}, %[[V0]], %[[G0]])
// CHECK: %[[R:.*]] = chimera.all_reduce stage 0 width 2(%[[G1]])
// CHECK-NOT: chimera.optimizer_step {{.*}} micro_batch
// CHECK: %[[V2:.*]], %[[P1:.*]] = chimera.optimizer_step pipeline 0 stage 0(%[[V1]], %[[P0]], %[[R]])
// CHECK: chimera.yield %[[V1]], %[[V2]], %[[P1]],
chimera.pipeline @step stages(2) micro_batches(2) schedule("pipedream-2bw") data_parallel(2) split_backward
