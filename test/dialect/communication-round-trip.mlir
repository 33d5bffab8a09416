// Posts, groups, all-reduces and waits survive text, generic text and bytecode.
// Here the ops may be anywhere; each phase has its own rules for their
// positions.
//
// RUN: chimera-opt %s --allow-unregistered-dialect | chimera-opt --allow-unregistered-dialect | FileCheck %s
// RUN: chimera-opt %s --allow-unregistered-dialect --mlir-print-op-generic | chimera-opt --allow-unregistered-dialect | FileCheck %s
// RUN: chimera-opt %s --allow-unregistered-dialect --emit-bytecode | chimera-opt --allow-unregistered-dialect | FileCheck %s

// CHECK: %[[V:.*]]:3 = "values"()
%y, %dy, %g = "values"() : () -> (!chimera.activation<64>,
    !chimera.gradient<32>, !chimera.weight_gradient<16>)

// CHECK-NEXT: %[[P:.*]] = chimera.post_send %[[V]]#0 to 2 pipeline 0 stage 1 micro_batch 3 : !chimera.activation<64>
%p = chimera.post_send %y to 2 pipeline 0 stage 1 micro_batch 3 :
    !chimera.activation<64>
// CHECK-NEXT: chimera.wait %[[P]] : !chimera.sending
chimera.wait %p : !chimera.sending

// CHECK-NEXT: %[[P1:.*]] = chimera.post_send %[[V]]#1 to 0 pipeline 1 stage 1 micro_batch 3 on 1 buffers [] {note = "kept"} : !chimera.gradient<32>
%p1 = chimera.post_send %dy to 0 pipeline 1 stage 1 micro_batch 3 on 1
    buffers [] {note = "kept"} : !chimera.gradient<32>
// CHECK-NEXT: chimera.wait %[[P1]] on 1 {note = "kept"} : !chimera.sending
chimera.wait %p1 on 1 {note = "kept"} : !chimera.sending

// CHECK-NEXT: %[[P2:.*]] = chimera.post_send %[[V]]#0 to 2 pipeline 0 stage 1 micro_batch 4 count 2 on 1 : !chimera.activation<64>
%p2 = chimera.post_send %y to 2 pipeline 0 stage 1 micro_batch 4 count 2 on 1 :
    !chimera.activation<64>
// CHECK-NEXT: %[[Q2:.*]] = chimera.post_receive from 0 pipeline 1 stage 1 micro_batch 3 part 1 of 2 on 1 : <!chimera.gradient<16>>
%q2 = chimera.post_receive from 0 pipeline 1 stage 1 micro_batch 3 part 1 of 2
    on 1 : !chimera.arriving<!chimera.gradient<16>>

// CHECK-NEXT: %[[Q:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 : <!chimera.activation<64>>
%q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 :
    !chimera.arriving<!chimera.activation<64>>
// CHECK-NEXT: %{{.*}} = chimera.wait %[[Q]] : !chimera.arriving<!chimera.activation<64>> -> !chimera.activation<64>
%x = chimera.wait %q : !chimera.arriving<!chimera.activation<64>> ->
    !chimera.activation<64>

// CHECK-NEXT: %[[Q1:.*]] = chimera.post_receive from 2 pipeline 1 stage 2 micro_batch 5 on 1 buffers [9] {note = "kept"} : <!chimera.gradient<32>>
%q1 = chimera.post_receive from 2 pipeline 1 stage 2 micro_batch 5 on 1
    buffers [9] {note = "kept"} : !chimera.arriving<!chimera.gradient<32>>
// CHECK-NEXT: %{{.*}} = chimera.wait %[[Q1]] on 1 buffers [9] : !chimera.arriving<!chimera.gradient<32>> -> !chimera.gradient<32>
%x1 = chimera.wait %q1 on 1 buffers [9] :
    !chimera.arriving<!chimera.gradient<32>> -> !chimera.gradient<32>

// CHECK-NEXT: %[[T:.*]]:2 = chimera.group on 1 buffers [] {
// CHECK-NEXT:   %[[GP:.*]] = chimera.post_send %[[V]]#0 to 2
// CHECK-NEXT:   %[[GQ:.*]] = chimera.post_receive from 2
// CHECK-NEXT:   chimera.yield %[[GP]], %[[GQ]] : !chimera.sending, !chimera.arriving<!chimera.activation<64>>
// CHECK-NEXT: } {note = "kept"} : !chimera.sending, !chimera.arriving<!chimera.activation<64>>
%t:2 = chimera.group on 1 buffers [] {
  %a = chimera.post_send %y to 2 pipeline 0 stage 1 micro_batch 0 on 1 :
      !chimera.activation<64>
  %b = chimera.post_receive from 2 pipeline 1 stage 1 micro_batch 2 on 1 :
      !chimera.arriving<!chimera.activation<64>>
  chimera.yield %a, %b : !chimera.sending,
      !chimera.arriving<!chimera.activation<64>>
} {note = "kept"} : !chimera.sending, !chimera.arriving<!chimera.activation<64>>

// CHECK: %{{.*}} = chimera.group {
%t1 = chimera.group {
  %a = chimera.post_send %y to 2 pipeline 0 stage 1 micro_batch 0 :
      !chimera.activation<64>
  chimera.yield %a : !chimera.sending
} : !chimera.sending

// CHECK: %[[R:.*]] = chimera.all_reduce_start stage 1 width 1 workers [1, 0] keys [0, 1](%[[V]]#2) : (!chimera.weight_gradient<16>) -> !chimera.arriving<!chimera.weight_gradient<16>>
%r = chimera.all_reduce_start stage 1 width 1 workers [1, 0] keys [0, 1] (%g) :
    (!chimera.weight_gradient<16>) ->
    !chimera.arriving<!chimera.weight_gradient<16>>
// CHECK-NEXT: %{{.*}} = chimera.all_reduce_start stage 0 width 2 workers [1, 1] keys [0, 1] on 1 buffers [3] {note = "kept"}(%[[V]]#2, %[[V]]#2) :
%r1 = chimera.all_reduce_start stage 0 width 2 workers [1, 1] keys [0, 1] on 1
    buffers [3] {note = "kept"} (%g, %g) :
    (!chimera.weight_gradient<16>, !chimera.weight_gradient<16>) ->
    !chimera.arriving<!chimera.weight_gradient<16>>
// CHECK-NEXT: %{{.*}} = chimera.wait %[[R]] : !chimera.arriving<!chimera.weight_gradient<16>> -> !chimera.weight_gradient<16>
%s = chimera.wait %r : !chimera.arriving<!chimera.weight_gradient<16>> ->
    !chimera.weight_gradient<16>

// CHECK-NEXT: %{{.*}} = chimera.all_reduce_start stage 0 bucket 1 of 3 width 2 workers [1, 0] keys [0, 1](%[[V]]#2) :
%r2 = chimera.all_reduce_start stage 0 bucket 1 of 3 width 2 workers [1, 0]
    keys [0, 1] (%g) : (!chimera.weight_gradient<16>) ->
    !chimera.arriving<!chimera.weight_gradient<16>>
// CHECK-NEXT: %[[B:.*]]:2 = chimera.split pipeline 0 stage 1 on 1 buffers [4, 5] {note = "kept"}(%[[V]]#2) : (!chimera.weight_gradient<16>) -> (!chimera.weight_gradient<9>, !chimera.weight_gradient<7>)
%b:2 = chimera.split pipeline 0 stage 1 on 1 buffers [4, 5] {note = "kept"} (%g) :
    (!chimera.weight_gradient<16>) ->
    (!chimera.weight_gradient<9>, !chimera.weight_gradient<7>)
// CHECK-NEXT: %{{.*}} = chimera.join pipeline 0 stage 1 on 1 buffers [3] {note = "kept"}(%[[B]]#0, %[[B]]#1) : (!chimera.weight_gradient<9>, !chimera.weight_gradient<7>) -> !chimera.weight_gradient<16>
%j = chimera.join pipeline 0 stage 1 on 1 buffers [3] {note = "kept"} (%b#0, %b#1) :
    (!chimera.weight_gradient<9>, !chimera.weight_gradient<7>) ->
    !chimera.weight_gradient<16>

// CHECK-NEXT: %{{.*}} = chimera.all_reduce_start stage 0 tied 3 bucket 0 of 2 width 1 workers [0, 3, 3, 0] keys [0, 0, 1, 1] on 0(%[[V]]#2, %[[V]]#2) :
%r3 = chimera.all_reduce_start stage 0 tied 3 bucket 0 of 2 width 1
    workers [0, 3, 3, 0] keys [0, 0, 1, 1] on 0 (%g, %g) :
    (!chimera.weight_gradient<16>, !chimera.weight_gradient<16>) ->
    !chimera.arriving<!chimera.weight_gradient<16>>
// CHECK-NEXT: %{{.*}} = chimera.overwrite pipeline 1 stage 3 on 0 buffers [3] {note = "kept"}(%[[V]]#2 with %{{.*}}) : <16>
%n = chimera.overwrite pipeline 1 stage 3 on 0 buffers [3] {note = "kept"}
    (%g with %s) : !chimera.weight_gradient<16>
