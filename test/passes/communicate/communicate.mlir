// RUN: chimera-opt %s --chimera-to-communicated --split-input-file | FileCheck %s

// Both posts come directly after the action that makes the value: first the
// receive, then the send. The wait for the receive is directly before the use
// of the value, and the wait for the send is directly after this use.
// CHECK-LABEL: chimera.pipeline @linear
// CHECK: %[[Y:.*]], %[[S:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NEXT: %[[Q:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : <!chimera.activation<64>>
// CHECK-NEXT: %[[P:.*]] = chimera.post_send %[[Y]] to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<64>
// CHECK-NEXT: %[[L:.*]] = chimera.load pipeline 0 stage 1 micro_batch 0 on 1
// CHECK-NEXT: %[[X:.*]] = chimera.wait %[[Q]] on 1
// CHECK-NEXT: chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%[[X]], %{{.*}}, %[[L]])
// CHECK-NEXT: chimera.wait %[[P]] on 0
// A gradient is sent in the other direction. Its label has the number of the
// stage that made it.
// CHECK: %{{.*}}, %[[D:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 0 on 1
// CHECK-NEXT: %[[QD:.*]] = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 on 0 : <!chimera.gradient<64>>
// CHECK-NEXT: %[[PD:.*]] = chimera.post_send %[[D]] to 0 pipeline 0 stage 1 micro_batch 0 on 1 : !chimera.gradient<64>
// CHECK-NEXT: %[[XD:.*]] = chimera.wait %[[QD]] on 0
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 0 on 0(%[[S]], %[[XD]],
// CHECK-NEXT: chimera.wait %[[PD]] on 1
// The all-reduce is not split yet. The synchronise pass splits it later.
// CHECK-NEXT: chimera.all_reduce
chimera.pipeline @linear stages(2) micro_batches(1) schedule("gpipe")

// -----

// There are messages for 4 micro-batches, 3 boundaries and 2 directions.
// CHECK-LABEL: chimera.pipeline @chimera
// CHECK-COUNT-24: chimera.post_receive
// CHECK-NOT: chimera.post_receive
chimera.pipeline @chimera stages(4) micro_batches(4) schedule("chimera")

// -----

// A single worker has no messages.
// CHECK-LABEL: chimera.pipeline @single
// CHECK-NOT: {{post|wait}}
chimera.pipeline @single stages(1) micro_batches(2) schedule("gpipe") split_backward

// -----

// A worker waits for both messages of a pair before the pair, and posts both
// results after it.
// CHECK-LABEL: chimera.pipeline @pair
// CHECK: %[[A:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1 on 1
// CHECK: chimera.wait %[[A]] on 1 : !chimera.arriving<!chimera.activation<64>>
// CHECK-NEXT: chimera.wait %{{.*}} on 1 : !chimera.arriving<!chimera.gradient<64>>
// CHECK-NEXT: chimera.forward pipeline 0 stage 1 micro_batch 1 joined on 1(
// CHECK-NEXT: chimera.backward pipeline 0 stage 1 micro_batch 0 on 1(
// CHECK-NEXT: chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 1 on 2
// CHECK-NEXT: chimera.post_send %{{.*}} to 2 pipeline 0 stage 1 micro_batch 1 on 1
// CHECK-NEXT: chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 on 0
// CHECK-NEXT: chimera.post_send %{{.*}} to 0 pipeline 0 stage 1 micro_batch 0 on 1
chimera.pipeline @pair stages(3) micro_batches(2) {
  chimera.direction 0 down on [0, 1, 2] micro_batches [0, 1]
  chimera.order 0 "F0 F1 B0 B1"
  chimera.order 1 "F0 F1+B0 B1"
  chimera.order 2 "F0 B0 F1 B1"
}
