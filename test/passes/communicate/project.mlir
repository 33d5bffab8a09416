// RUN: chimera-opt %s --chimera-to-projected | FileCheck %s

// Every worker gets its part of the step, in the order of the step. Its
// arguments and results are the states of its replicas. Its ops name no worker.
// CHECK-LABEL: chimera.pipeline @p
// CHECK: chimera.direction 1
// CHECK-NEXT: chimera.worker 0 holds [0, 0, 1, 1] {
// CHECK-NEXT: ^bb0(%[[W0:.*]]: !chimera.weights<64>, %[[O0:.*]]: !chimera.optimizer_state<128>, %[[W1:.*]]: !chimera.weights<64>, %[[O1:.*]]: !chimera.optimizer_state<128>):
// CHECK-NOT: on 0
// CHECK-NEXT: chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<64>
// CHECK-NEXT: %[[Y:.*]], %[[S:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0 slot 0({{.*}}, %[[W0]])
// CHECK-NEXT: %[[P:.*]] = chimera.post_send %[[Y]] to 1 pipeline 0 stage 0 micro_batch 0
// CHECK-NEXT: %[[Q:.*]] = chimera.post_receive from 1 pipeline 1 stage 0 micro_batch 1
// CHECK-NEXT: chimera.load pipeline 1 stage 1 micro_batch 1 : !chimera.labels<64>
// CHECK-NEXT: %[[X:.*]] = chimera.wait %[[Q]]
// CHECK-NEXT: chimera.forward pipeline 1 stage 1 micro_batch 1 slot 1(%[[X]], %[[W1]],
// CHECK-NEXT: chimera.wait %[[P]]
// CHECK-NEXT: chimera.backward pipeline 1 stage 1 micro_batch 1 slot 2
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0
// CHECK-NEXT: chimera.wait
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 0 slot 3(%[[S]],
// CHECK-NEXT: chimera.wait
// CHECK-NEXT: chimera.all_reduce_start stage 1
// CHECK-NEXT: chimera.all_reduce_start stage 1
// CHECK-NEXT: chimera.all_reduce_start stage 0
// CHECK-NEXT: chimera.wait
// CHECK-NEXT: %[[NW1:.*]], %[[NO1:.*]] = chimera.optimizer_step pipeline 1 stage 1(%[[W1]], %[[O1]],
// CHECK-NEXT: chimera.wait
// CHECK-NEXT: %[[NW0:.*]], %[[NO0:.*]] = chimera.optimizer_step pipeline 0 stage 0(%[[W0]], %[[O0]],
// CHECK-NEXT: chimera.wait
// CHECK-NEXT: chimera.yield %[[NW0]], %[[NO0]], %[[NW1]], %[[NO1]] :
// CHECK-NEXT: }
// CHECK-NEXT: chimera.worker 1 holds [0, 1, 1, 0] {
// CHECK-NOT: chimera.step
chimera.pipeline @p stages(2) micro_batches(2) schedule("chimera")
