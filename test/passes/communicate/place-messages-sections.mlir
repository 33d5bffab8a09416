// The prologue, the step and the epilogue each start with new receive windows:
// no message is in flight between them. A message for the next section is
// awaited at the end of the section before it.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-place-messages | FileCheck %s
// RUN: chimera-opt %s --chimera-to-projected --chimera-place-messages --chimera-allocate --chimera-verify-allocated --chimera-verify-program -o /dev/null

// CHECK: chimera.worker 1
// CHECK-SAME: prologue {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.post_receive from 0
// CHECK: } step {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.post_receive from 0
// CHECK: } epilogue {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.post_receive from 0
chimera.pipeline @p stages(2) micro_batches(2) schedule("pipedream") receive_window(1)
