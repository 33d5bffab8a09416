// A group stays together, and its posts name no worker. If a replica is not
// updated, its state is yielded unchanged. A worker without work is also made.
//
// RUN: chimera-opt %s --chimera-project --allow-unregistered-dialect | FileCheck %s

// CHECK: chimera.worker 0 holds [0, 0, 0, 1] {
// CHECK-NEXT: ^bb0(%[[W:.*]]: !chimera.weights<1>, %[[O:.*]]: !chimera.optimizer_state<1>, %[[W1:.*]]: !chimera.weights<1>, %[[O1:.*]]: !chimera.optimizer_state<1>):
// CHECK-NEXT: %[[T:.*]] = chimera.group {
// CHECK-NEXT:   %[[Q:.*]] = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 : <!chimera.activation<1>>
// CHECK-NEXT:   chimera.yield %[[Q]]
// CHECK-NEXT: }
// CHECK-NEXT: chimera.wait %[[T]] :
// CHECK-NEXT: chimera.yield %[[W]], %[[O]], %[[W1]], %[[O1]]
// CHECK: chimera.worker 1 holds [] {
// CHECK-NEXT: chimera.yield
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 0] micro_batches [0]
  chimera.step {
  ^bb0(%w0: !chimera.weights<1>, %o0: !chimera.optimizer_state<1>,
       %w1: !chimera.weights<1>, %o1: !chimera.optimizer_state<1>):
    %t = chimera.group on 0 {
      %q = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 on 0 :
          !chimera.arriving<!chimera.activation<1>>
      chimera.yield %q : !chimera.arriving<!chimera.activation<1>>
    } : !chimera.arriving<!chimera.activation<1>>
    %x = chimera.wait %t on 0 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    chimera.yield %w0, %o0, %w1, %o1 : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
