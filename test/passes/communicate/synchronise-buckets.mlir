// Gradients are cut into buckets after the last backward. Each bucket has an
// all-reduce, and the buckets are joined before the update.
//
// RUN: chimera-opt %s --chimera-to-projected --split-input-file | FileCheck %s

// CHECK-LABEL: chimera.pipeline @chimera
// CHECK-SAME: bucket_bytes(31)
// CHECK: chimera.worker 0
// CHECK: %[[G:.*]], %{{.*}} = chimera.backward pipeline 1 stage 1
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start {{.*}}!chimera.loss<8>
// CHECK-NEXT: %[[B:.*]]:3 = chimera.split pipeline 1 stage 1(%[[G]]) : (!chimera.weight_gradient<64>) -> (!chimera.weight_gradient<24>, !chimera.weight_gradient<24>, !chimera.weight_gradient<16>)
// CHECK-NEXT: %[[T0:.*]] = chimera.all_reduce_start stage 1 bucket 0 of 3 width 1 workers [1, 0] keys [0, 1](%[[B]]#0) : (!chimera.weight_gradient<24>)
// CHECK-NEXT: %[[T1:.*]] = chimera.all_reduce_start stage 1 bucket 1 of 3 {{.*}}(%[[B]]#1) : (!chimera.weight_gradient<24>)
// CHECK-NEXT: %[[T2:.*]] = chimera.all_reduce_start stage 1 bucket 2 of 3 {{.*}}(%[[B]]#2) : (!chimera.weight_gradient<16>)
// CHECK: chimera.backward pipeline 0 stage 0
// CHECK: chimera.split pipeline 0 stage 0
// CHECK: %[[R0:.*]] = chimera.wait %[[T0]]
// CHECK-NEXT: %[[R1:.*]] = chimera.wait %[[T1]]
// CHECK-NEXT: %[[R2:.*]] = chimera.wait %[[T2]]
// CHECK-NEXT: %[[R:.*]] = chimera.join pipeline 1 stage 1(%[[R0]], %[[R1]], %[[R2]]) : (!chimera.weight_gradient<24>, !chimera.weight_gradient<24>, !chimera.weight_gradient<16>) -> !chimera.weight_gradient<64>
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1({{.*}}, %[[R]])
// CHECK: chimera.join pipeline 0 stage 0
chimera.pipeline @chimera stages(2) micro_batches(2) schedule("chimera") bucket_bytes(31) all_reduce(eager)

// -----

// A single bucket is not cut.
// CHECK-LABEL: chimera.pipeline @one
// CHECK-NOT: chimera.split
chimera.pipeline @one stages(2) micro_batches(2) schedule("chimera") bucket_bytes(64)

// -----

// With one pipeline and one copy, gradients are not reduced and not cut.
// CHECK-LABEL: chimera.pipeline @alone
// CHECK-NOT: chimera.split
chimera.pipeline @alone stages(2) micro_batches(2) schedule("1f1b") bucket_bytes(8)

// -----

// Both replicas of the middle stage (of three) are on one worker, so its
// gradient is not cut.
// CHECK-LABEL: chimera.pipeline @odd
// CHECK: chimera.worker 1
// CHECK-NOT: chimera.split
// CHECK: chimera.all_reduce_start stage 1 width 1 workers [1, 1]
// CHECK: chimera.worker 2
// CHECK: chimera.split
chimera.pipeline @odd stages(3) micro_batches(4) schedule("chimera") bucket_bytes(32)

// -----

// There is one update per micro-batch. Each one has its own buckets.
// CHECK-LABEL: chimera.pipeline @each
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 0
// CHECK: chimera.split pipeline 0 stage 1
// CHECK: chimera.join pipeline 0 stage 1
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1 micro_batch 0
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 1
// CHECK: chimera.split pipeline 0 stage 1
// CHECK: chimera.join pipeline 0 stage 1
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1 micro_batch 1
chimera.pipeline @each stages(2) micro_batches(2) schedule("pipedream") data_parallel(2) bucket_bytes(32)
