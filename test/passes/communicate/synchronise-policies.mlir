// When a worker starts the all-reduces of its stages' gradients.
//
// RUN: chimera-opt %s --chimera-to-projected --split-input-file | FileCheck %s

// Eager starts each all-reduce after the last backward of its stage and the
// sends of this backward. It also does so on the middle workers, without idle
// time. The losses follow the last backward of the last stage, because a backward
// may add to its loss.
// CHECK-LABEL: chimera.pipeline @eager
// CHECK: chimera.worker 0
// CHECK: chimera.backward pipeline 1 stage 3 micro_batch 3
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start {{.*}}!chimera.loss<8>
// CHECK-NEXT: chimera.all_reduce_start stage 3
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 1
// CHECK-NEXT: chimera.all_reduce_start stage 0
// CHECK: chimera.worker 1
// CHECK: chimera.backward pipeline 1 stage 2 micro_batch 3
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start stage 2
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 1
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start stage 1
chimera.pipeline @eager stages(4) micro_batches(4) schedule("chimera") all_reduce(eager)

// -----

// eager_opt starts an all-reduce early only if there is idle time. On worker 0,
// stage 3 starts before the last backward of stage 0. On worker 1, stage 2
// starts after that of stage 1 (Figure 5 of Chimera's paper).
// CHECK-LABEL: chimera.pipeline @opt
// CHECK-SAME: all_reduce(eager_opt)
// CHECK: chimera.worker 0
// CHECK: chimera.backward pipeline 1 stage 3 micro_batch 3
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start stage 3
// CHECK: chimera.worker 1
// CHECK-NOT: chimera.all_reduce_start
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 1
// CHECK: chimera.all_reduce_start stage 2
// CHECK-NEXT: chimera.all_reduce_start stage 1
chimera.pipeline @opt stages(4) micro_batches(4) schedule("chimera") all_reduce(eager_opt)

// -----

// The costs decide whether there is idle time: stage 0 is so slow that no idle
// time is left, so stage 3 starts no earlier than stage 0.
// CHECK-LABEL: chimera.pipeline @costs
// CHECK: chimera.worker 0
// CHECK: chimera.backward pipeline 1 stage 3 micro_batch 3
// CHECK-NOT: chimera.all_reduce_start stage 3
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 1
// CHECK: chimera.all_reduce_start stage 3
chimera.pipeline @costs stages(4) micro_batches(4) schedule("chimera") all_reduce(eager_opt) {
  chimera.stage 0 cost <forward = 1, backward = 100> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 1> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 1> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 3 cost <forward = 1, backward = 1> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}

// -----

// All workers of two all-reduces start them in the same order. Stages 0 and 1
// have the same workers here. The gradient of stage 1 is complete first, so
// worker 0 starts stage 0 after it, although its own part is ready earlier.
// CHECK-LABEL: chimera.pipeline @members
// CHECK: chimera.worker 0
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 2
// CHECK-NOT: chimera.all_reduce_start stage 0
// CHECK: chimera.backward pipeline 1 stage 1 micro_batch 3
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start {{.*}}!chimera.loss<8>
// CHECK-NEXT: chimera.all_reduce_start stage 1
// CHECK-NEXT: chimera.all_reduce_start stage 0
// CHECK: chimera.worker 1
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 2
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start {{.*}}!chimera.loss<8>
// CHECK-NEXT: chimera.all_reduce_start stage 1
// CHECK: chimera.backward pipeline 1 stage 0 micro_batch 3
// CHECK-NEXT: chimera.all_reduce_start stage 0
chimera.pipeline @members stages(2) micro_batches(4) schedule("gems") all_reduce(eager)

// -----

// Idle time is computed for the order with recomputes.
// CHECK-LABEL: chimera.pipeline @recompute
// CHECK: chimera.worker 0
// CHECK: chimera.backward pipeline 1 stage 3 micro_batch 3
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start stage 3
// CHECK: chimera.recompute pipeline 0 stage 0 micro_batch 0
// CHECK: chimera.worker 1
// CHECK: chimera.backward pipeline 1 stage 2 micro_batch 3
// CHECK-NEXT: chimera.post_send
// CHECK-NOT: chimera.all_reduce_start stage 2
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 1
chimera.pipeline @recompute stages(4) micro_batches(4) schedule("chimera") recompute(all) all_reduce(eager_opt)
