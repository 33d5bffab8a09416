// The first and the last stage share an embedding matrix. Its gradient has one
// all-reduce over the workers of both stages. A worker starts it after the
// later one of its two backwards.
//
// RUN: chimera-opt %s --chimera-to-projected --split-input-file | FileCheck %s
// RUN: chimera-opt %s --chimera-to-allocated --split-input-file | FileCheck %s --check-prefix=PLACES

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied

// Worker 0 has stage 0 of pipeline 0 and stage 1 of pipeline 1. The sum is in
// the bytes of its first gradient, and is copied to those of the second.
// CHECK-LABEL: chimera.pipeline @chimera
// CHECK: chimera.worker 0
// CHECK: chimera.backward pipeline 1 stage 1
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start {{.*}}!chimera.loss<8>
// CHECK-NEXT: %[[L:.*]]:2 = chimera.split pipeline 1 stage 1
// CHECK-NEXT: %[[R1:.*]] = chimera.all_reduce_start stage 1 width 1 workers [1, 0] keys [0, 1](%[[L]]#0)
// CHECK: chimera.backward pipeline 0 stage 0
// CHECK-NEXT: %[[F:.*]]:2 = chimera.split pipeline 0 stage 0
// CHECK-NEXT: %[[R0:.*]] = chimera.all_reduce_start stage 0 width 1 workers [0, 1] keys [0, 1](%[[F]]#1)
// CHECK-NEXT: %[[T:.*]] = chimera.all_reduce_start stage 0 tied 1 width 1 workers [0, 1, 1, 0] keys [0, 0, 1, 1](%[[F]]#0, %[[L]]#1)
// CHECK: %[[V1:.*]] = chimera.wait %[[R1]]
// CHECK-NEXT: %[[S:.*]] = chimera.wait %[[T]]
// CHECK-NEXT: %[[C:.*]] = chimera.overwrite pipeline 1 stage 1(%[[L]]#1 with %[[S]])
// CHECK-NEXT: %[[G1:.*]] = chimera.join pipeline 1 stage 1(%[[V1]], %[[C]])
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1({{.*}}, %[[G1]])
// CHECK-NEXT: %[[V0:.*]] = chimera.wait %[[R0]]
// CHECK-NEXT: %[[G0:.*]] = chimera.join pipeline 0 stage 0(%[[S]], %[[V0]])
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0({{.*}}, %[[G0]])

// PLACES-LABEL: chimera.pipeline @chimera
// PLACES: chimera.worker 0
// PLACES: chimera.split pipeline 1 stage 1 buffers [[[#]], [[L:[0-9]+]]]
// PLACES: chimera.split pipeline 0 stage 0 buffers [[[F:[0-9]+]], [[#]]]
// PLACES: chimera.all_reduce_start stage 0 tied 1 {{.*}} buffers [[[F]]]
// PLACES: chimera.overwrite {{.*}} buffers [[[L]]]
chimera.pipeline @chimera of @m stages(2) micro_batches(2) schedule("chimera")
    all_reduce(eager)

// -----

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied

// Each gradient is cut into buckets, and 80 bytes are tied. The buckets of the
// first gradient are joined after the sum is copied to the second one.
// CHECK-LABEL: chimera.pipeline @buckets
// CHECK: chimera.worker 0
// CHECK: %[[F:.*]]:2 = chimera.split pipeline 0 stage 0
// CHECK-NEXT: %[[L:.*]]:2 = chimera.split pipeline 1 stage 1
// CHECK: %[[P:.*]]:2 = chimera.split pipeline 0 stage 0(%[[F]]#0) : (!chimera.weight_gradient<80>) -> (!chimera.weight_gradient<64>, !chimera.weight_gradient<16>)
// CHECK-NEXT: %[[Q:.*]]:2 = chimera.split pipeline 1 stage 1(%[[L]]#1) : (!chimera.weight_gradient<80>) -> (!chimera.weight_gradient<64>, !chimera.weight_gradient<16>)
// CHECK-NEXT: chimera.all_reduce_start stage 0 tied 1 bucket 0 of 2 {{.*}}(%[[P]]#0, %[[Q]]#0)
// CHECK-NEXT: chimera.all_reduce_start stage 0 tied 1 bucket 1 of 2 {{.*}}(%[[P]]#1, %[[Q]]#1)
// CHECK: %[[C0:.*]] = chimera.overwrite pipeline 1 stage 1(%[[Q]]#0
// CHECK-NEXT: %[[C1:.*]] = chimera.overwrite pipeline 1 stage 1(%[[Q]]#1
// CHECK-NEXT: chimera.join pipeline 1 stage 1(%[[C0]], %[[C1]])
// CHECK-NEXT: chimera.join pipeline 0 stage 0(
// CHECK: chimera.optimizer_step
chimera.pipeline @buckets of @m stages(2) micro_batches(2) schedule("chimera")
    bucket_bytes(64)

// -----

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied

// A worker that has only one of the two stages adds one gradient.
// CHECK-LABEL: chimera.pipeline @line
// CHECK: chimera.worker 0
// CHECK: chimera.all_reduce_start stage 0 tied 2 width 1 workers [0, 2] keys [0, 0](%{{[^,]*}})
// CHECK-NOT: chimera.overwrite
// CHECK: chimera.worker 1
// CHECK-NOT: tied
// CHECK: chimera.worker 2
// CHECK: chimera.all_reduce_start stage 0 tied 2 width 1 workers [0, 2] keys [0, 0](%{{[^,]*}})
chimera.pipeline @line of @m stages(3) micro_batches(2) schedule("1f1b")
