// A gradient is cut into buckets. The buckets and their sums are inside the
// bytes of the gradient. The joined gradient is in the gradient's buffer.
//
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s

// CHECK-LABEL: chimera.pipeline @p
// CHECK: chimera.worker 0
// CHECK-DAG: chimera.buffer [[P0:[0-9]+]] : !chimera.weight_gradient<24> at [[#A:]]{{$}}
// CHECK-DAG: chimera.buffer [[P1:[0-9]+]] : !chimera.weight_gradient<24> at [[#A+24]]{{$}}
// CHECK-DAG: chimera.buffer [[P2:[0-9]+]] : !chimera.weight_gradient<16> at [[#A+48]]{{$}}
// CHECK: chimera.backward {{.*}} micro_batch 1 buffers [[[G:[0-9]+]]]
// CHECK-NEXT: chimera.split pipeline 0 stage 0 buffers [[[P0]], [[P1]], [[P2]]]
// CHECK-NEXT: chimera.all_reduce_start {{.*}} bucket 0 of 3 {{.*}} buffers [[[P0]]]
// CHECK-NEXT: chimera.all_reduce_start {{.*}} bucket 1 of 3 {{.*}} buffers [[[P1]]]
// CHECK-NEXT: chimera.all_reduce_start {{.*}} bucket 2 of 3 {{.*}} buffers [[[P2]]]
// CHECK: chimera.wait {{.*}} buffers [[[P0]]]
// CHECK-NEXT: chimera.wait {{.*}} buffers [[[P1]]]
// CHECK-NEXT: chimera.wait {{.*}} buffers [[[P2]]]
// CHECK-NEXT: chimera.join pipeline 0 stage 0 buffers [[[G]]]
// CHECK-NEXT: chimera.optimizer_step
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") data_parallel(2) bucket_bytes(24)
