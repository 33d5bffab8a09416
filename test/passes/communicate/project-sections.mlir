// If steps overlap, each worker gets its part of every section. The section's
// arguments and results are those of the worker's replicas.
//
// RUN: chimera-opt %s --chimera-to-projected | FileCheck %s
// CHECK-NOT: chimera.prologue
// CHECK: chimera.worker 0 holds [0, 0] prologue {
// CHECK-NEXT: ({{.*}}: !chimera.weights<64>, {{.*}}: !chimera.optimizer_state<128>):
// CHECK: chimera.copy pipeline 0 stage 0(
// CHECK: chimera.yield {{.*}} : !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.stash<64>
// CHECK-NEXT: } step {
// CHECK-NEXT: ({{.*}}: !chimera.weights<64>, %[[W:.*]]: !chimera.weights<64>, {{.*}}: !chimera.optimizer_state<128>, %[[S:.*]]: !chimera.stash<64>):
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 1({{.*}}, %[[W]])
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 0(%[[S]],
// CHECK: } epilogue {
// CHECK: chimera.yield {{.*}} : !chimera.weights<64>, !chimera.optimizer_state<128>
// CHECK: chimera.worker 1 holds [0, 1] prologue {
// CHECK-NEXT: (%[[W1:.*]]: !chimera.weights<64>, %[[O1:.*]]: !chimera.optimizer_state<128>):
// CHECK-NEXT: %[[Q:.*]] = chimera.post_receive from 0
// CHECK-NEXT: %[[A:.*]] = chimera.wait %[[Q]]
// CHECK-NEXT: chimera.yield %[[W1]], %[[O1]], %[[A]]
// CHECK: } step {
// CHECK-NEXT: ({{.*}}: !chimera.weights<64>, {{.*}}: !chimera.optimizer_state<128>, %[[X:.*]]: !chimera.activation<64>):
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 0(%[[X]],
chimera.pipeline @each stages(2) micro_batches(2) schedule("pipedream")
