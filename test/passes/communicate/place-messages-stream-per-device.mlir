// With one stream per device, consecutive sends and the receive after them are
// one group, also if their peers differ. A post after this receive is not in
// the group.
//
// RUN: chimera-compile %s --messages=stream-per-device -o %t
// RUN: chimera-translate --program-to-json %t | FileCheck %s --check-prefix=FILE
// FILE: "message_model": "stream-per-device"
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-communicate=messages=stream-per-device --chimera-synchronise=messages=stream-per-device --chimera-project --chimera-place-messages=messages=stream-per-device | FileCheck %s

// CHECK: chimera.worker 1
// CHECK: chimera.forward {{.*}} micro_batch 0
// CHECK-NEXT: chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1
// CHECK-NEXT: chimera.post_send {{.*}} to 2 pipeline 0 stage 1 micro_batch 0
// CHECK: chimera.forward {{.*}} micro_batch 2
// CHECK-NEXT: %[[G:.*]]:2 = chimera.group {
// CHECK-NEXT: %[[S:.*]] = chimera.post_send {{.*}} to 2 pipeline 0 stage 1 micro_batch 2
// CHECK-NEXT: %[[R:.*]] = chimera.post_receive from 2 pipeline 0 stage 2 micro_batch 1
// CHECK-NEXT: chimera.yield %[[S]], %[[R]]
// CHECK: chimera.wait %[[G]]#1
// CHECK-NEXT: chimera.backward {{.*}} micro_batch 1
// CHECK: chimera.wait %[[G]]#0
chimera.pipeline @p stages(3) micro_batches(4) schedule("1f1b")
