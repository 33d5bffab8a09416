// With one communicator per pair of workers, both ends post messages in the
// same order, next to each other. Messages that are sent in both directions at
// the same time are one group.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-place-messages=messages=stream-per-pair | FileCheck %s
// RUN: chimera-opt %s --chimera-to-projected --chimera-place-messages=messages=stream-per-pair --chimera-allocate --chimera-verify-allocated --chimera-verify-program=messages=stream-per-pair -o /dev/null

// CHECK: chimera.worker 0
// CHECK: chimera.forward {{.*}} micro_batch 2
// CHECK-NEXT: %[[G:.*]]:2 = chimera.group {
// CHECK-NEXT: %[[S:.*]] = chimera.post_send {{.*}} to 1 pipeline 0 stage 0 micro_batch 2
// CHECK-NEXT: %[[R:.*]] = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 1
// CHECK-NEXT: chimera.yield %[[S]], %[[R]] : !chimera.sending, !chimera.arriving<!chimera.gradient<64>>
// CHECK-NEXT: } : !chimera.sending, !chimera.arriving<!chimera.gradient<64>>
// CHECK-NEXT: chimera.wait %[[G]]#1
// CHECK-NEXT: chimera.backward {{.*}} micro_batch 1
// CHECK-NEXT: chimera.wait %[[G]]#0

// Posts in one direction form no group.
// CHECK: chimera.worker 1
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.post_receive
// CHECK-NEXT: chimera.post_receive
// CHECK-NEXT: chimera.load
chimera.pipeline @p stages(2) micro_batches(4) schedule("1f1b")
