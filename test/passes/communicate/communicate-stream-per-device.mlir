// With one stream per device, messages are posted in the order in which they
// are ready. The message of micro-batch 2 is ready before the message of an
// action that started earlier and still runs. So it is posted first. As with
// other models, the posts of both ends are next to each other.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-communicate=messages=stream-per-device | FileCheck %s
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 0 on 1
// CHECK-NOT: chimera.post_send {{.*}} to 2
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 2 on 0
// CHECK-NEXT: chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 2 on 1
// CHECK-NEXT: chimera.post_send {{.*}} to 1 pipeline 0 stage 0 micro_batch 2 on 0
// CHECK-NEXT: chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 on 2
// CHECK-NEXT: chimera.post_send {{.*}} to 2 pipeline 0 stage 1 micro_batch 0 on 1

// RUN: chimera-opt %s --chimera-to-communicated | FileCheck %s --check-prefix=START
// START: chimera.forward pipeline 0 stage 1 micro_batch 0 on 1
// START-NEXT: chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 on 2
// START-NEXT: chimera.post_send {{.*}} to 2 pipeline 0 stage 1 micro_batch 0 on 1
chimera.pipeline @p stages(3) micro_batches(3) schedule("gpipe") {
  chimera.stage 0 cost <forward = 2, backward = 1> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 5, backward = 1> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 1> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}
