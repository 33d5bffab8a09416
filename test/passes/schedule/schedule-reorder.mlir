// The unrolled step has another order than the schedule. The pass reorders it,
// and lets each backward add to the gradient sum of the one before it.
//
// RUN: chimera-opt %s --chimera-schedule | FileCheck %s
// The same holds if some actions already have a worker.
// RUN: sed 's/backward pipeline 0 stage 0 micro_batch 1/& on 0/' %s | chimera-opt --chimera-schedule | FileCheck %s

// CHECK: %[[E0:.*]], %[[S0:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0
// CHECK: %[[E1:.*]], %[[S1:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 1 on 0
// CHECK: %[[A:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0(%[[S0]], %[[E0]], %{{[^,]*}}) :
// CHECK-NEXT: %[[B:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 1 on 0(%[[S1]], %[[E1]], %{{.*}}, %[[A]])
// CHECK-NEXT: chimera.all_reduce stage 0 width 1(%[[E0]], %[[E1]])
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 on 0(%{{.*}}, %{{.*}}, %[[B]])
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 B1"
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t1 = chimera.load pipeline 0 stage 0 micro_batch 1 : !chimera.tokens<1>
    %l1 = chimera.load pipeline 0 stage 0 micro_batch 1 : !chimera.labels<1>
    %e1, %s1 = chimera.forward pipeline 0 stage 0 micro_batch 1 (%t1, %w, %l1) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    %g1 = chimera.backward pipeline 0 stage 0 micro_batch 1 (%s1, %e1, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    %t0 = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l0 = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e0, %s0 = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t0, %w, %l0) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) ->
        (!chimera.loss<1>, !chimera.stash<1>)
    %g0 = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s0, %e0, %w, %g1) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    %e = chimera.all_reduce stage 0 width 1 (%e0, %e1) :
        (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>
    %nw, %no = chimera.optimizer_step pipeline 0 stage 0 (%w, %o, %g0) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    chimera.yield %nw, %no : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
