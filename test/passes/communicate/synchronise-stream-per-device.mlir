// With one stream per device, all workers start an all-reduce at the same
// position of the global order, after its last backward on any worker.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-communicate=messages=stream-per-device --chimera-synchronise=messages=stream-per-device | FileCheck %s
// CHECK: chimera.backward pipeline 1 stage 1 micro_batch 1 slot 2 on 0
// CHECK-NOT: chimera.all_reduce_start
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 0 slot 2 on 1
// CHECK-COUNT-2: chimera.post_send
// CHECK-NEXT: chimera.all_reduce_start stage 1 {{.*}} on 1
// CHECK-NEXT: chimera.all_reduce_start stage 1 {{.*}} on 0
// CHECK: chimera.backward pipeline 1 stage 0 micro_batch 1 slot 3 on 1
// CHECK-NEXT: chimera.all_reduce_start stage 0 {{.*}} on 0
// CHECK-NEXT: chimera.all_reduce_start stage 0 {{.*}} on 1

// Otherwise each worker starts an all-reduce after its own last backward.
// RUN: chimera-opt %s --chimera-to-synchronised | FileCheck %s --check-prefix=OWN
// OWN: chimera.backward pipeline 1 stage 1 micro_batch 1 slot 2 on 0
// OWN: chimera.all_reduce_start stage 1 {{.*}} on 0
// OWN: chimera.backward pipeline 0 stage 1 micro_batch 0 slot 2 on 1
// OWN: chimera.all_reduce_start stage 1 {{.*}} on 1
chimera.pipeline @p stages(2) micro_batches(2) schedule("chimera") all_reduce(eager)
