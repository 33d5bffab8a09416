// If steps overlap, no transfer crosses the end of a section. The activation in
// flight is received, and its send is awaited, before the end.
//
// RUN: chimera-opt %s --chimera-to-communicated | FileCheck %s

// CHECK-LABEL: @each
// CHECK: chimera.prologue
// CHECK: %[[Y:.*]], %[[S:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NEXT: %[[Q:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1
// CHECK-NEXT: %[[P:.*]] = chimera.post_send %[[Y]] to 1 pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NEXT: %[[A:.*]] = chimera.wait %[[Q]] on 1
// CHECK-NEXT: chimera.wait %[[P]] on 0
// CHECK-NEXT: chimera.yield {{.*}}, %[[S]], {{.*}}, %[[A]] :
// CHECK: chimera.step
// CHECK: !chimera.stash<64>, {{.*}}, %[[X:[a-z0-9]*]]: !chimera.activation<64>):
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%[[X]],
// CHECK: %[[Y2:.*]], %{{.*}} = chimera.forward pipeline 0 stage 0 micro_batch 2 on 0
// CHECK-NEXT: %[[Q2:.*]] = chimera.post_receive
// CHECK: chimera.optimizer_step
// CHECK: chimera.all_reduce {{.*}} : (!chimera.loss<8>, !chimera.loss<8>)
// CHECK-NEXT: %[[A2:.*]] = chimera.wait %[[Q2]] on 1
// CHECK-NEXT: chimera.wait %{{.*}} on 0
// CHECK-NEXT: chimera.yield {{.*}}, %[[A2]] :
// CHECK: chimera.epilogue
// CHECK: chimera.all_reduce {{.*}} : (!chimera.loss<8>, !chimera.loss<8>)
// CHECK-NEXT: chimera.yield

chimera.pipeline @each stages(2) micro_batches(2) schedule("pipedream") data_parallel(2)

// With recomputation, stage 1 of 3 carries the inputs of its forwards into the
// next section. Each input is received once, read, and yielded before the next
// one. Stage 0 carries no stash and no activation.
// CHECK-LABEL: @again
// CHECK: chimera.prologue
// CHECK: %[[Q0:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1
// CHECK: %[[Q1:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1 on 1
// CHECK: %[[A0:.*]] = chimera.wait %[[Q0]] on 1
// CHECK-NEXT: chimera.forward pipeline 0 stage 1 micro_batch 0 on 1(%[[A0]],
// CHECK: %[[A1:.*]] = chimera.wait %[[Q1]] on 1
// CHECK-NOT: post_receive from 0
// CHECK: chimera.yield %{{[^,]*}}, %{{[^,]*}}, %[[O:[a-z0-9]*]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[A0]], %[[A1]], {{.*}} : !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.activation<64>, !chimera.activation<64>,
chimera.pipeline @again stages(3) micro_batches(3) schedule("pipedream-2bw") recompute(all)
