// If steps overlap, each section has its own all-reduces.
//
// RUN: chimera-opt %s --chimera-to-synchronised | FileCheck %s

// CHECK-LABEL: @each
// The all-reduce of a gradient is started and awaited directly after its
// backward and before its update. The all-reduce of the losses comes last.
// CHECK: chimera.step
// CHECK: %[[G:.*]], %{{.*}} = chimera.backward pipeline 0 stage 1 micro_batch 0 on 1
// CHECK: %[[T:.*]] = chimera.all_reduce_start stage 1 width 2 workers [1] keys [0] on 1(%[[G]])
// CHECK-NEXT: %[[R:.*]] = chimera.wait %[[T]] on 1
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1 micro_batch 0 on 1({{.*}}, %[[R]])
// CHECK: chimera.optimizer_step pipeline 0 stage 0 micro_batch 1 on 0
// CHECK-NEXT: %[[L:.*]] = chimera.all_reduce_start stage 1 width 2 workers [1, 1] keys [0, 1] on 1
// CHECK: chimera.wait %[[L]] on 1
// CHECK-NEXT: chimera.yield
chimera.pipeline @each stages(2) micro_batches(2) schedule("pipedream") data_parallel(2)

// There is one update per step. All-reduces start after all actions, in the
// order in which sums are complete. The wait for each is before its update.
// CHECK-LABEL: @step
// CHECK: chimera.step
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 1 on 0
// CHECK: %[[L:.*]] = chimera.all_reduce_start stage 1 width 2 workers [1, 1] keys [0, 1] on 1
// CHECK-NEXT: %[[T1:.*]] = chimera.all_reduce_start stage 1 width 2 workers [1] keys [0] on 1
// CHECK-NEXT: %[[T0:.*]] = chimera.all_reduce_start stage 0 width 2 workers [0] keys [0] on 0
// CHECK-NEXT: %[[R1:.*]] = chimera.wait %[[T1]] on 1
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1 on 1({{.*}}, %[[R1]])
// CHECK-NEXT: %[[R0:.*]] = chimera.wait %[[T0]] on 0
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 on 0({{.*}}, %[[R0]])
// CHECK: chimera.wait %[[L]] on 1
// CHECK-NEXT: chimera.yield
// CHECK: chimera.epilogue
chimera.pipeline @step stages(2) micro_batches(2) schedule("pipedream-2bw") data_parallel(2)


// The last backward of a stage is also the last action of its worker in the
// section. So eager starts the all-reduce after all actions.
// CHECK-LABEL: @eager
// CHECK: chimera.step
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 1 on 1
// CHECK-NEXT: chimera.post_receive
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start {{.*}}!chimera.loss<8>
// CHECK-NEXT: chimera.all_reduce_start stage 1 width 2 workers [1] keys [0] on 1
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 1 on 0
// CHECK-NEXT: chimera.all_reduce_start stage 0 width 2 workers [0] keys [0] on 0
chimera.pipeline @eager stages(2) micro_batches(2) schedule("pipedream-2bw") data_parallel(2) all_reduce(eager)

// If steps overlap, eager_opt does not look for idle time. It does what lazy
// does.
// CHECK-LABEL: @opt
// CHECK: chimera.step
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 1 on 0
// CHECK: chimera.all_reduce_start
// CHECK-NEXT: chimera.all_reduce_start
// CHECK-NEXT: chimera.all_reduce_start
chimera.pipeline @opt stages(2) micro_batches(2) schedule("pipedream-2bw") data_parallel(2) all_reduce(eager_opt)
