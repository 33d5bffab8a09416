// RUN: chimera-opt %s --chimera-to-synchronised --split-input-file | FileCheck %s

// With the lazy policy, every worker starts all of its all-reduces after all
// actions, in the order in which sums are complete: losses first, then later
// stages before earlier ones. It waits for each one before the update that
// needs it, and for the losses last. `workers` and `keys` list who adds, in
// order: the replica of stage 1 in pipeline 0 is on worker 1.
// CHECK-LABEL: chimera.pipeline @chimera
// CHECK: %[[G10:.*]], %{{.*}} = chimera.backward pipeline 1 stage 1 {{.*}} on 0
// CHECK: %[[G01:.*]], %{{.*}} = chimera.backward pipeline 0 stage 1 {{.*}} on 1
// CHECK: %[[G00:.*]] = chimera.backward pipeline 0 stage 0 {{.*}} on 0
// CHECK: %[[G11:.*]] = chimera.backward pipeline 1 stage 0 {{.*}} on 1
// CHECK-NOT: chimera.all_reduce stage
// For losses, `keys` are micro-batches. Worker 1 has the loss of 0, worker 0 of
// 1.
// CHECK: %[[E1:.*]] = chimera.all_reduce_start stage 1 width 1 workers [1, 0] keys [0, 1] on 1({{.*}} : (!chimera.loss<8>)
// CHECK-NEXT: %[[E0:.*]] = chimera.all_reduce_start stage 1 width 1 workers [1, 0] keys [0, 1] on 0({{.*}} : (!chimera.loss<8>)
// CHECK-NEXT: %[[A1:.*]] = chimera.all_reduce_start stage 1 width 1 workers [1, 0] keys [0, 1] on 1(%[[G01]])
// CHECK-NEXT: %[[A0:.*]] = chimera.all_reduce_start stage 1 width 1 workers [1, 0] keys [0, 1] on 0(%[[G10]])
// CHECK-NEXT: %[[B0:.*]] = chimera.all_reduce_start stage 0 width 1 workers [0, 1] keys [0, 1] on 0(%[[G00]])
// CHECK-NEXT: %[[B1:.*]] = chimera.all_reduce_start stage 0 width 1 workers [0, 1] keys [0, 1] on 1(%[[G11]])
// CHECK-NEXT: %[[S1:.*]] = chimera.wait %[[A1]] on 1
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1 on 1({{.*}}, %[[S1]])
// CHECK-NEXT: %[[S0:.*]] = chimera.wait %[[A0]] on 0
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1 on 0({{.*}}, %[[S0]])
// CHECK-NEXT: %[[T0:.*]] = chimera.wait %[[B0]] on 0
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 on 0({{.*}}, %[[T0]])
// CHECK-NEXT: %[[T1:.*]] = chimera.wait %[[B1]] on 1
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 0 on 1({{.*}}, %[[T1]])
// CHECK-NEXT: chimera.wait %[[E1]] on 1
// CHECK-NEXT: chimera.wait %[[E0]] on 0
chimera.pipeline @chimera stages(2) micro_batches(2) schedule("chimera")

// -----

// One worker has the losses of all micro-batches. If a gradient has no other
// replicas, the update uses it directly.
// CHECK-LABEL: chimera.pipeline @linear
// CHECK: %[[G1:.*]], %{{.*}} = chimera.backward pipeline 0 stage 1 micro_batch 2 on 1
// CHECK: %[[G0:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 2 on 0
// CHECK: %[[E:.*]] = chimera.all_reduce_start stage 1 width 1 workers [1, 1, 1] keys [0, 1, 2] on 1(%{{.*}}, %{{.*}}, %{{.*}}) :
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1 on 1({{.*}}, %[[G1]])
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 on 0({{.*}}, %[[G0]])
// CHECK-NEXT: chimera.wait %[[E]] on 1
chimera.pipeline @linear stages(2) micro_batches(3) schedule("1f1b")

// -----

// With four copies there are all-reduces, although a copy has only one replica.
// CHECK-LABEL: chimera.pipeline @copies
// CHECK: chimera.all_reduce_start stage 0 width 4 workers [0] keys [0] on 0({{.*}} : (!chimera.loss<8>)
// CHECK-NEXT: chimera.all_reduce_start stage 0 width 4 workers [0] keys [0] on 0({{.*}} : (!chimera.weight_gradient<64>)
chimera.pipeline @copies stages(1) micro_batches(1) schedule("gpipe") data_parallel(4)
