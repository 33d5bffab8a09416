// If steps overlap, loop-carried values have buffers of their own. At the end
// of a section, values of the same type may exchange these buffers.
//
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s

// Worker 0 has two versions of its weights, and two stashes in flight. Buffers
// 0 and 1 are the weights and optimizer state. The step reads the two versions
// from buffers 2 and 0. All later buffers start at 256 or after, where these
// end.
// CHECK-LABEL: @step
// CHECK: chimera.worker 0 holds [0, 0] arguments [0, 1] loop_carried [2, 0, 1, 3, 4] arena
// CHECK: chimera.buffer 0 : !chimera.weights<64> at 0
// CHECK-NEXT: chimera.buffer 1 : !chimera.optimizer_state<128> at 64
// CHECK-NEXT: chimera.buffer 2 : !chimera.weights<64> at 192
// CHECK-NEXT: chimera.buffer 3 : !chimera.stash<64>{{$}}
// CHECK-NEXT: chimera.buffer 4 : !chimera.stash<64>{{$}}
// CHECK-NOT: at {{[0-9]?[0-9]$|1[0-9][0-9]$|2[0-4][0-9]$|25[0-5]$}}
// The copy is the older version. Both stashes are in the buffers of the step.
// CHECK: chimera.copy pipeline 0 stage 0 buffers [2](
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 0 buffers [{{[0-9]+}}, 3](
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 1 buffers [{{[0-9]+}}, 4](
// The next step still reads the version in buffer 0. So the update overwrites
// the other version.
// CHECK: } step {
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 2
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 buffers [2, 1](
// CHECK: } epilogue {
// CHECK: chimera.optimizer_step pipeline 0 stage 0 buffers [{{0|2}}, 1](

// Worker 1 receives its activation into a buffer of its own. Buffers of
// messages come after all other buffers.
// CHECK: chimera.worker 1 holds [0, 1] arguments [0, 1] loop_carried [2, 0, 1, 3, [[A:[0-9]+]]]
// CHECK: chimera.buffer [[A]] : !chimera.activation<64> at 320
// CHECK-NOT: at {{[0-9]?[0-9]$|1[0-9][0-9]$|2[0-4][0-9]$|25[0-5]$|3[2-7][0-9]$|38[0-3]$}}
// CHECK: chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1 buffers {{\[}}[[A]]{{\]}}
chimera.pipeline @step stages(3) micro_batches(3) schedule("pipedream-2bw")

// With an update after each backward, three versions exchange their buffers.
// CHECK-LABEL: @each
// CHECK: chimera.worker 0 holds [0, 0] arguments [0, 1] loop_carried [2, 3, 0, 1, 4, 5]
// CHECK: } step {
// CHECK: chimera.optimizer_step pipeline 0 stage 0 micro_batch 0 buffers [2, 1]
// CHECK: chimera.optimizer_step pipeline 0 stage 0 micro_batch 1 buffers [3, 1]
// CHECK: chimera.optimizer_step pipeline 0 stage 0 micro_batch 2 buffers [0, 1]
chimera.pipeline @each stages(3) micro_batches(3) schedule("pipedream")

// With recomputation, stage 1 of 4 keeps the inputs of three micro-batches,
// each in a buffer of its own. Stage 0 keeps nothing.
// CHECK-LABEL: @again
// CHECK: chimera.worker 0 holds [0, 0] arguments [0, 1] loop_carried [2, 0, 1] arena
// CHECK: chimera.worker 1 holds [0, 1] arguments [0, 1] loop_carried [2, 0, 1, 3, 4, 5] arena
// CHECK: chimera.buffer 3 : !chimera.activation<64> at 320
// CHECK-NEXT: chimera.buffer 4 : !chimera.activation<64> at 384
// CHECK-NEXT: chimera.buffer 5 : !chimera.activation<64> at 448
// CHECK-NOT: at {{[0-9]?[0-9]$|1[0-9][0-9]$|2[0-4][0-9]$|25[0-5]$|3[2-9][0-9]$|4[0-9][0-9]$|50[0-9]$|51[01]$}}
// CHECK: chimera.worker 2
chimera.pipeline @again stages(4) micro_batches(4) schedule("pipedream-2bw") recompute(all)
