// Workers and buffers survive text, generic text and bytecode.
//
// RUN: chimera-opt %s | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --mlir-print-op-generic | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --emit-bytecode | chimera-opt | FileCheck %s

// CHECK-LABEL: chimera.pipeline @p
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  // A worker before allocation.
  // CHECK: chimera.worker 0 holds [] {
  // CHECK-NEXT: chimera.yield
  chimera.worker 0 holds [] { chimera.yield }

  // CHECK: chimera.worker 1 holds [0, 1, 1, 0] attributes {note = "kept"} {
  // CHECK-NEXT: ^bb0(%[[W:.*]]: !chimera.weights<64>, %[[O:.*]]: !chimera.optimizer_state<128>, %[[W1:.*]]: !chimera.weights<64>, %[[O1:.*]]: !chimera.optimizer_state<128>):
  // CHECK-NEXT: chimera.yield %[[W]], %[[O]], %[[W1]], %[[O1]] :
  chimera.worker 1 holds [0, 1, 1, 0] attributes {note = "kept"} {
  ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<128>,
       %w1: !chimera.weights<64>, %o1: !chimera.optimizer_state<128>):
    chimera.yield %w, %o, %w1, %o1 : !chimera.weights<64>,
        !chimera.optimizer_state<128>, !chimera.weights<64>,
        !chimera.optimizer_state<128>
  }

  // A worker after allocation: all values have buffers. A stash has no offset.
  // CHECK: chimera.worker 2 holds [0, 0] arguments [0, 1] arena 576 peak 100 at 3 {
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: chimera.buffer 0 : !chimera.weights<64> at 0
  // CHECK-NEXT: chimera.buffer 1 : !chimera.optimizer_state<128> at 64
  // CHECK-NEXT: chimera.buffer 2 : !chimera.stash<9223372036854775807>
  // CHECK-NEXT: chimera.buffer 3 : !chimera.tokens<1> at 192 {note = "kept"}
  // CHECK-NEXT: chimera.buffer 4 : !chimera.labels<1> at 256
  // CHECK-NEXT: chimera.buffer 5 : !chimera.activation<1> at 320
  // CHECK-NEXT: chimera.buffer 6 : !chimera.gradient<1> at 384
  // CHECK-NEXT: chimera.buffer 7 : !chimera.loss<1> at 448
  // CHECK-NEXT: chimera.buffer 8 : !chimera.weight_gradient<1> at 512
  chimera.worker 2 holds [0, 0] arguments [0, 1] arena 576 peak 100 at 3 {
  ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<128>):
    chimera.buffer 0 : !chimera.weights<64> at 0
    chimera.buffer 1 : !chimera.optimizer_state<128> at 64
    chimera.buffer 2 : !chimera.stash<9223372036854775807>
    chimera.buffer 3 : !chimera.tokens<1> at 192 {note = "kept"}
    chimera.buffer 4 : !chimera.labels<1> at 256
    chimera.buffer 5 : !chimera.activation<1> at 320
    chimera.buffer 6 : !chimera.gradient<1> at 384
    chimera.buffer 7 : !chimera.loss<1> at 448
    chimera.buffer 8 : !chimera.weight_gradient<1> at 512
    chimera.yield %w, %o : !chimera.weights<64>, !chimera.optimizer_state<128>
  }
}

// CHECK-LABEL: chimera.pipeline @overlapping
// CHECK: chimera.worker 0 holds [0, 0] arguments [0, 1] loop_carried [2, 0, 1] prologue {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.buffer 0
// CHECK: } step {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: chimera.yield
// CHECK-NEXT: } epilogue {
// CHECK: chimera.yield %{{.*}}, %{{.*}} : !chimera.weights<1>, !chimera.optimizer_state<1>
// CHECK-NEXT: }
chimera.pipeline @overlapping stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] arguments [0, 1] loop_carried [2, 0, 1] prologue {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    %v = chimera.copy pipeline 0 stage 0 (%w) : !chimera.weights<1>
    chimera.yield %v, %w, %o : !chimera.weights<1>, !chimera.weights<1>,
        !chimera.optimizer_state<1>
  } step {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %v, %w, %o : !chimera.weights<1>, !chimera.weights<1>,
        !chimera.optimizer_state<1>
  } epilogue {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
