// Each post of a group has a buffer of its own, until the wait for the post
// after the group.
//
// RUN: chimera-opt %s --chimera-allocate --chimera-verify-allocated | FileCheck %s

// CHECK: chimera.worker 0
// CHECK: chimera.forward {{.*}} buffers [[[Y:[0-9]+]], {{[0-9]+}}]
// CHECK-NEXT: chimera.group {
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.post_receive {{.*}} buffers [[[D:[0-9]+]]] : <!chimera.gradient<64>>
// CHECK-NEXT: chimera.yield
// CHECK-NEXT: } :
// CHECK-NEXT: chimera.load
// CHECK-NOT: chimera.forward {{.*}} buffers [[[Y]],
// CHECK: chimera.forward {{.*}} micro_batch 1
// CHECK-NEXT: chimera.wait %{{.*}}#0 : !chimera.sending
// CHECK-NEXT: chimera.wait %{{.*}}#1 buffers [[[D]]]
// CHECK-NEXT: chimera.load
// Both transfers are complete, so their bytes can be used again.
// CHECK-NEXT: chimera.forward {{.*}} micro_batch 2 buffers [[[Y]],
chimera.pipeline @p stages(2) micro_batches(3) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<64>):
    %t0 = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<64>
    %y0, %s0 = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t0, %w) :
        (!chimera.tokens<64>, !chimera.weights<64>) -> (!chimera.activation<64>, !chimera.stash<64>)
    %g:2 = chimera.group {
      %p = chimera.post_send %y0 to 1 pipeline 0 stage 0 micro_batch 0 : !chimera.activation<64>
      %q = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 : !chimera.arriving<!chimera.gradient<64>>
      chimera.yield %p, %q : !chimera.sending, !chimera.arriving<!chimera.gradient<64>>
    } : !chimera.sending, !chimera.arriving<!chimera.gradient<64>>
    %t1 = chimera.load pipeline 0 stage 0 micro_batch 1 : !chimera.tokens<64>
    %y1, %s1 = chimera.forward pipeline 0 stage 0 micro_batch 1 (%t1, %w) :
        (!chimera.tokens<64>, !chimera.weights<64>) -> (!chimera.activation<64>, !chimera.stash<64>)
    chimera.wait %g#0 : !chimera.sending
    %d = chimera.wait %g#1 : !chimera.arriving<!chimera.gradient<64>> -> !chimera.gradient<64>
    %t2 = chimera.load pipeline 0 stage 0 micro_batch 2 : !chimera.tokens<64>
    %y2, %s2 = chimera.forward pipeline 0 stage 0 micro_batch 2 (%t2, %w) :
        (!chimera.tokens<64>, !chimera.weights<64>) -> (!chimera.activation<64>, !chimera.stash<64>)
    chimera.yield %w, %o : !chimera.weights<64>, !chimera.optimizer_state<64>
  }
}
