// Stages 0 and 1 of this step are on worker 0, so there is no message between
// them. Running the pass again changes nothing.
//
// RUN: chimera-opt %s --allow-unregistered-dialect --chimera-communicate | FileCheck %s
// RUN: chimera-opt %s --allow-unregistered-dialect --chimera-communicate --chimera-communicate | FileCheck %s

// CHECK: %[[Y:.*]], %{{.*}} = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NEXT: %[[X:.*]], %{{.*}} = chimera.forward pipeline 0 stage 1 micro_batch 0 on 0(%[[Y]],
// CHECK-NEXT: %[[Q:.*]] = chimera.post_receive from 0 pipeline 0 stage 1 micro_batch 0 on 1
// CHECK-NEXT: %[[P:.*]] = chimera.post_send %[[X]] to 1
// CHECK-NEXT: %[[A:.*]] = chimera.wait %[[Q]] on 1
// CHECK-NEXT: chimera.forward pipeline 0 stage 2 micro_batch 0 on 1(%[[A]],
// CHECK-NEXT: chimera.wait %[[P]] on 0
// CHECK-NEXT: chimera.yield
chimera.pipeline @p stages(3) micro_batches(1) schedule("gpipe") {
  chimera.step {
    %t = "tokens"() : () -> !chimera.tokens<1>
    %l = "labels"() : () -> !chimera.labels<1>
    %w = "weights"() : () -> !chimera.weights<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) ->
        (!chimera.activation<1>, !chimera.stash<1>)
    %x, %s1 = chimera.forward pipeline 0 stage 1 micro_batch 0 on 0 (%y, %w) :
        (!chimera.activation<1>, !chimera.weights<1>) ->
        (!chimera.activation<1>, !chimera.stash<1>)
    %e, %s2 = chimera.forward pipeline 0 stage 2 micro_batch 0 on 1 (%x, %w, %l) :
        (!chimera.activation<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    chimera.yield
  }
}
