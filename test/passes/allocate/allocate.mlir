// RUN: chimera-opt %s --chimera-to-projected --chimera-allocate --split-input-file | FileCheck %s

// Gradient sums, weights and optimizer state are updated in place. The loads of
// the second micro-batch use the bytes of the first one's loads again. Its loss
// and stash have bytes of their own.
//
// The peak is at instruction 5, the second forward. It has weights of 64 bytes,
// state of 128, tokens and labels of 64, two losses of 8, two stashes of 64.
// CHECK-LABEL: chimera.pipeline @one
// CHECK: chimera.worker 0 holds [0, 0] arguments [0, 1] arena 576 stashes {{[0-9]+}} peak 464 at 5 {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.buffer 0 : !chimera.weights<64> at 0
// CHECK-NEXT: chimera.buffer 1 : !chimera.optimizer_state<128> at 64
// CHECK: chimera.load {{.*}} micro_batch 0 buffers [[[T:[0-9]+]]] : !chimera.tokens
// CHECK-NEXT: chimera.load {{.*}} micro_batch 0 buffers [[[L:[0-9]+]]] : !chimera.labels
// CHECK-NEXT: chimera.forward {{.*}} micro_batch 0 buffers [[[E0:[0-9]+]], [[S0:[0-9]+]]]
// CHECK-NEXT: chimera.load {{.*}} micro_batch 1 buffers [[[T]]] : !chimera.tokens
// CHECK-NEXT: chimera.load {{.*}} micro_batch 1 buffers [[[L]]] : !chimera.labels
// CHECK-NOT: chimera.forward {{.*}} buffers [[[E0]],
// CHECK-NOT: chimera.forward {{.*}}, [[S0]]]
// CHECK: chimera.forward {{.*}} micro_batch 1 buffers
// CHECK-NEXT: chimera.backward {{.*}} micro_batch 0 buffers [[[G:[0-9]+]]]
// CHECK-NEXT: chimera.backward {{.*}} micro_batch 1 buffers [[[G]]]
// If two values are summed, the sum has a buffer of its own until its wait.
// CHECK-NEXT: chimera.all_reduce_start {{.*}} buffers [[[R:[0-9]+]]]
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 buffers [0, 1](
// CHECK-NEXT: chimera.wait {{.*}} buffers [[[R]]]
chimera.pipeline @one stages(1) micro_batches(2) schedule("gpipe")

// -----

// At both ends, a message owns its buffer from the post to the wait. Worker 0
// makes the second activation elsewhere, because it has not yet waited for the
// first send. Worker 1 receives both activations into buffers of their own.
// Both received gradients use the same bytes, because the first is used before
// the second post.
// CHECK-LABEL: chimera.pipeline @two
// CHECK: chimera.worker 0
// CHECK: chimera.forward {{.*}} micro_batch 0 buffers [[[Y:[0-9]+]], {{[0-9]+}}]
// CHECK-NEXT: chimera.post_send
// CHECK-NEXT: chimera.load
// CHECK-NOT: chimera.forward {{.*}} buffers [[[Y]],
// CHECK: chimera.forward {{.*}} micro_batch 1 buffers
// CHECK: chimera.post_receive {{.*}} micro_batch 0 buffers [[[D:[0-9]+]]]
// CHECK: chimera.wait {{.*}} buffers [[[D]]]
// CHECK: chimera.post_receive {{.*}} micro_batch 1 buffers [[[D]]]
// If a worker adds one gradient to a sum, the sum replaces it in place.
// CHECK: chimera.backward {{.*}} micro_batch 1 buffers [[[G:[0-9]+]]]
// CHECK-NEXT: chimera.all_reduce_start {{.*}} width 2 {{.*}} buffers [[[G]]]
// CHECK-NEXT: chimera.wait {{.*}} buffers [[[G]]]
// CHECK: chimera.worker 1
// CHECK: chimera.post_receive {{.*}} micro_batch 0 buffers [[[X0:[0-9]+]]]
// CHECK-NOT: chimera.post_receive {{.*}} buffers [[[X0]]]
// CHECK: chimera.post_receive {{.*}} micro_batch 1 buffers [[[X1:[0-9]+]]]
// CHECK: chimera.wait {{.*}} buffers [[[X0]]]
// CHECK: chimera.wait {{.*}} buffers [[[X1]]]
chimera.pipeline @two stages(2) micro_batches(2) schedule("gpipe") data_parallel(2)

// -----

// Offsets are multiples of 64. A stash takes no bytes, because it is opaque.
// CHECK-LABEL: chimera.pipeline @odd
// CHECK: chimera.buffer 0 : !chimera.weights<5> at 0
// CHECK-NEXT: chimera.buffer 1 : !chimera.optimizer_state<7> at 64
// CHECK: chimera.buffer {{[0-9]+}} : !chimera.stash<1000>{{$}}
chimera.pipeline @odd stages(1) micro_batches(1) schedule("1f1b") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 5, optimizer = 7, stash = 1000, boundary = 1>
}

// -----

// The buffers of messages come after all other buffers. They share bytes only
// with other messages, and tokens never with a message.
// CHECK-LABEL: chimera.pipeline @messages
// CHECK: chimera.worker 0 holds [0, 0] arguments [0, 1] arena 2304
// CHECK-DAG: chimera.buffer {{[0-9]+}} : !chimera.tokens<64> at 192
// CHECK-DAG: chimera.buffer {{[0-9]+}} : !chimera.activation<1024> at 256
// CHECK-DAG: chimera.buffer {{[0-9]+}} : !chimera.gradient<1024> at 256
// CHECK-DAG: chimera.buffer {{[0-9]+}} : !chimera.activation<1024> at 1280
// CHECK-NOT: at {{25[6-9]$|2[6-9][0-9]$|[3-9][0-9][0-9]$|1[0-9][0-9][0-9]$|2[0-9][0-9][0-9]$}}
// CHECK: chimera.worker 1
chimera.pipeline @messages stages(2) micro_batches(4) schedule("1f1b") {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 8, optimizer = 16, stash = 8, boundary = 1024>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 8, optimizer = 16, stash = 8, boundary = 1024>
}

// -----

// Tokens share bytes only with tokens, and labels only with labels, although
// there are losses and gradient sums that end before or begin after them.
// CHECK-LABEL: chimera.pipeline @loads
// CHECK: chimera.worker 0 {{.*}} arena 4672
// CHECK-DAG: chimera.buffer {{[0-9]+}} : !chimera.loss<8> at 4352
// CHECK-DAG: chimera.buffer {{[0-9]+}} : !chimera.tokens<64> at 4416
// CHECK-DAG: chimera.buffer {{[0-9]+}} : !chimera.labels<64> at 4480
// CHECK-DAG: chimera.buffer {{[0-9]+}} : !chimera.activation<8> at 4544
// CHECK-NOT: at {{44[2-7][0-9]|44[89][1-9]|45[0-3][0-9]}}
// CHECK: chimera.load {{.*}} micro_batch 0 buffers [[[T:[0-9]+]]] : !chimera.tokens
// CHECK: chimera.load {{.*}} micro_batch 1 buffers [[[L:[0-9]+]]] : !chimera.labels
// CHECK: chimera.load {{.*}} micro_batch 2 buffers [[[T]]] : !chimera.tokens
// CHECK: chimera.load {{.*}} micro_batch 3 buffers [[[L]]] : !chimera.labels
chimera.pipeline @loads stages(2) micro_batches(4) schedule("chimera") {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1024, optimizer = 16, stash = 8, boundary = 8>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1024, optimizer = 16, stash = 8, boundary = 8>
}
