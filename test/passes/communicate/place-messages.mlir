// The positions at which receives are posted.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-place-messages --split-input-file | FileCheck %s
//
// If the module already has a chosen window, a new choice replaces it.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")' | chimera-opt --chimera-to-projected | sed 's/holds \[[0-9, ]*\]/& window 2/' | chimera-opt --chimera-choose-window | FileCheck %s --check-prefix=ANEW --implicit-check-not="window 2"
// ANEW: chimera.worker 0 holds [0, 0] {

// With a window of 1, one receive is outstanding on a channel. The first one is
// posted at the start. Each later one is posted after the wait for the one
// before it, and before the action that uses that one. A wait for a receive
// stays directly before its use. A wait for a send moves after the worker's
// next action.
// CHECK-LABEL: chimera.pipeline @one
// CHECK: chimera.worker 1
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[R0:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0
// CHECK-NEXT: chimera.load {{.*}} micro_batch 0
// CHECK-NEXT: %[[X0:.*]] = chimera.wait %[[R0]]
// CHECK-NEXT: %[[R1:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1
// CHECK-NEXT: chimera.forward {{.*}}(%[[X0]],
// CHECK-NEXT: chimera.load {{.*}} micro_batch 1
// CHECK-NEXT: %[[X1:.*]] = chimera.wait %[[R1]]
// CHECK-NEXT: %[[R2:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 2
// CHECK-NEXT: chimera.forward {{.*}}(%[[X1]],
// CHECK-NEXT: chimera.load {{.*}} micro_batch 2
// CHECK-NEXT: %[[X2:.*]] = chimera.wait %[[R2]]
// CHECK-NEXT: chimera.forward {{.*}}(%[[X2]],
// CHECK-NEXT: chimera.backward
// CHECK-NEXT: %[[S0:.*]] = chimera.post_send
// CHECK-NEXT: chimera.backward
// CHECK-NEXT: %[[S1:.*]] = chimera.post_send
// CHECK-NEXT: chimera.wait %[[S0]]
// CHECK-NEXT: chimera.backward
// CHECK-NEXT: %[[S2:.*]] = chimera.post_send
// CHECK-NEXT: chimera.wait %[[S1]]
// CHECK-NEXT: chimera.wait %[[S2]]
// CHECK-NEXT: chimera.all_reduce_start
chimera.pipeline @one stages(2) micro_batches(3) schedule("gpipe") receive_window(1)

// -----

// CHECK-LABEL: chimera.pipeline @two
// CHECK: chimera.worker 1
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[R0:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0
// CHECK-NEXT: %[[R1:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1
// CHECK-NEXT: chimera.load
// CHECK-NEXT: chimera.wait %[[R0]]
// CHECK-NEXT: %[[R2:.*]] = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 2
// CHECK-NEXT: chimera.forward
// CHECK-NEXT: chimera.load
// CHECK-NEXT: chimera.wait %[[R1]]
// CHECK-NEXT: chimera.forward
chimera.pipeline @two stages(2) micro_batches(3) schedule("gpipe") receive_window(2)

// -----

// If the window is as large as the number of messages, all receives are posted
// at the start.
// CHECK-LABEL: chimera.pipeline @all
// CHECK: chimera.worker 1
// CHECK-NEXT: ^bb0
// CHECK-COUNT-3: post_receive
// CHECK-NOT: post_receive
chimera.pipeline @all stages(2) micro_batches(3) schedule("gpipe") receive_window(2147483647)

// -----

// By default, the window is the smallest one that costs no time. It is 1 if
// messages take no time.
// CHECK-LABEL: chimera.pipeline @free
// CHECK: chimera.worker 1
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.post_receive
// CHECK-NEXT: chimera.load
chimera.pipeline @free stages(2) micro_batches(3) schedule("gpipe") link <receive = 9>

// -----

// The window is larger if a message would be delayed otherwise: here forwards
// take 1 and messages take 2.
// CHECK-LABEL: chimera.pipeline @slow
// CHECK: chimera.worker 1
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.post_receive
// CHECK-NEXT: chimera.post_receive
// CHECK-NEXT: chimera.load
chimera.pipeline @slow stages(2) micro_batches(3) schedule("gpipe") link <latency = 2>

// -----

// Each channel has a window of its own. Worker 1 of three receives from both
// neighbours.
// CHECK-LABEL: chimera.pipeline @sides
// CHECK: chimera.worker 1
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0
// CHECK-NEXT: chimera.post_receive from 2 pipeline 0 stage 2 micro_batch 0
// CHECK-NEXT: chimera.wait
// CHECK-NEXT: chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1
// CHECK-NEXT: chimera.forward
chimera.pipeline @sides stages(3) micro_batches(2) schedule("1f1b")
