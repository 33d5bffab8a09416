// The first and the last stage share a matrix. Its gradient has an all-reduce
// of its own, over the workers of both stages.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s
// Two workers send each other the 160 bytes of the matrix. All other parameters
// are on one worker each, so their gradients are not sent.
// CHECK: all-reduce of the gradient, by stage 0 0 0
// CHECK-NEXT: of tied weights 200
// CHECK-NEXT: un-overlapped at the step's end lazy = 200
chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied
chimera.pipeline @p of @m stages(3) micro_batches(2) schedule("1f1b")
    weight_type(f64) link <latency = 20, per_mib = 1048576>

// The 160 bytes of the matrix may also be summed in three buckets.
// RUN: sed 's|^    weight_type(f64)|& bucket_bytes(64)|' %s | chimera-opt --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=BUCKETS
// BUCKETS: all-reduce of the gradient, by stage 0 0 0
// BUCKETS-NEXT: in buckets 0 0 0
// BUCKETS-NEXT: of tied weights 280
// BUCKETS-NEXT: in buckets 3{{$}}
