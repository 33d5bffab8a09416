// A step and its actions survive text, generic text and bytecode.
//
// RUN: chimera-opt %s | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --mlir-print-op-generic | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --emit-bytecode | chimera-opt | FileCheck %s

// Two stages and one micro-batch. The backward of stage 0 is split.
// CHECK-LABEL: chimera.pipeline @p
// CHECK: chimera.step attributes {note = "kept"} {
// CHECK-NEXT: ^bb0(%[[W0:.*]]: !chimera.weights<64>, %[[O0:.*]]: !chimera.optimizer_state<128>, %[[W1:.*]]: !chimera.weights<32>, %[[O1:.*]]: !chimera.optimizer_state<96>):
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.step attributes {note = "kept"} {
  ^bb0(%w0: !chimera.weights<64>, %o0: !chimera.optimizer_state<128>,
       %w1: !chimera.weights<32>, %o1: !chimera.optimizer_state<96>):
    // CHECK-NEXT: %[[T:.*]] = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<24>
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<24>
    // CHECK-NEXT: %[[L:.*]] = chimera.load pipeline 0 stage 1 micro_batch 0 on 1 buffers [4] {note = "kept"} : !chimera.labels<24>
    %l = chimera.load pipeline 0 stage 1 micro_batch 0 on 1 buffers [4] {note = "kept"}
        : !chimera.labels<24>
    // CHECK-NEXT: %[[Y:.*]], %[[S0:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0(%[[T]], %[[W0]]) : (!chimera.tokens<24>, !chimera.weights<64>) -> (!chimera.activation<8>, !chimera.stash<16>)
    %y, %s0 = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w0) :
        (!chimera.tokens<24>, !chimera.weights<64>) ->
        (!chimera.activation<8>, !chimera.stash<16>)
    // CHECK-NEXT: %[[E:.*]], %[[S1:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 0 slot 9 on 1 buffers [5, 6] {note = "kept"}(%[[Y]], %[[W1]], %[[L]]) :
    %e, %s1 = chimera.forward pipeline 0 stage 1 micro_batch 0 slot 9 on 1
        buffers [5, 6] {note = "kept"} (%y, %w1, %l) :
        (!chimera.activation<8>, !chimera.weights<32>, !chimera.labels<24>) ->
        (!chimera.loss<4>, !chimera.stash<16>)
    // CHECK-NEXT: %[[R1:.*]], %[[DY:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 0 slot 10 on 1 buffers [7, 8](%[[S1]], %[[E]], %[[W1]]) :
    %r1, %dy = chimera.backward pipeline 0 stage 1 micro_batch 0 slot 10 on 1
        buffers [7, 8] (%s1, %e, %w1) :
        (!chimera.stash<16>, !chimera.loss<4>, !chimera.weights<32>) ->
        (!chimera.weight_gradient<32>, !chimera.gradient<8>)
    // CHECK-NEXT: %[[S2:.*]] = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 slot 11 on 0 buffers [1](%[[S0]], %[[DY]], %[[W0]]) : (!chimera.stash<16>, !chimera.gradient<8>, !chimera.weights<64>) -> !chimera.weight_stash<24>
    %s2 = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 slot 11 on 0
        buffers [1] (%s0, %dy, %w0) :
        (!chimera.stash<16>, !chimera.gradient<8>, !chimera.weights<64>) ->
        !chimera.weight_stash<24>
    // CHECK-NEXT: %[[G0:.*]] = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0(%[[S2]], %[[W0]]) : (!chimera.weight_stash<24>, !chimera.weights<64>) -> !chimera.weight_gradient<64>
    %g0 = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 (%s2, %w0) :
        (!chimera.weight_stash<24>, !chimera.weights<64>) -> !chimera.weight_gradient<64>
    // CHECK-NEXT: %[[R0:.*]] = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 slot 12 on 0 buffers [2](%[[S2]], %[[W0]], %[[G0]]) : (!chimera.weight_stash<24>, !chimera.weights<64>, !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    %r0 = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 slot 12 on 0
        buffers [2] (%s2, %w0, %g0) :
        (!chimera.weight_stash<24>, !chimera.weights<64>,
         !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    // CHECK-NEXT: %[[A:.*]]:2 = chimera.all_reduce stage 0 width 3(%[[R0]], %[[G0]]) {note = "kept"} : (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>) -> (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>)
    %a:2 = chimera.all_reduce stage 0 width 3 (%r0, %g0) {note = "kept"} :
        (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>) ->
        (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>)
    // CHECK-NEXT: %{{.*}} = chimera.all_reduce stage 1 width 1(%[[E]], %[[E]]) : (!chimera.loss<4>, !chimera.loss<4>) -> !chimera.loss<4>
    %sum = chimera.all_reduce stage 1 width 1 (%e, %e) :
        (!chimera.loss<4>, !chimera.loss<4>) -> !chimera.loss<4>
    // CHECK-NEXT: %[[NW0:.*]], %[[NO0:.*]] = chimera.optimizer_step pipeline 0 stage 0(%[[W0]], %[[O0]], %[[A]]#1) : <64>, <128>, <64>
    %nw0, %no0 = chimera.optimizer_step pipeline 0 stage 0 (%w0, %o0, %a#1) :
        !chimera.weights<64>, !chimera.optimizer_state<128>,
        !chimera.weight_gradient<64>
    // CHECK-NEXT: %[[NW1:.*]], %[[NO1:.*]] = chimera.optimizer_step pipeline 0 stage 1 on 1 buffers [2, 3] {note = "kept"}(%[[W1]], %[[O1]], %[[R1]]) : <32>, <96>, <32>
    %nw1, %no1 = chimera.optimizer_step pipeline 0 stage 1 on 1 buffers [2, 3]
        {note = "kept"} (%w1, %o1, %r1) :
        !chimera.weights<32>, !chimera.optimizer_state<96>,
        !chimera.weight_gradient<32>
    // CHECK-NEXT: chimera.yield %[[NW0]], %[[NO0]], %[[NW1]], %[[NO1]] : !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.weights<32>, !chimera.optimizer_state<96>
    chimera.yield %nw0, %no0, %nw1, %no1 : !chimera.weights<64>,
        !chimera.optimizer_state<128>, !chimera.weights<32>,
        !chimera.optimizer_state<96>
  }
}

// CHECK-LABEL: chimera.pipeline @empty
// CHECK: chimera.step {
// CHECK-NEXT: chimera.yield {note = "kept"}
chimera.pipeline @empty stages(1) micro_batches(1) schedule("gpipe") {
  chimera.step { chimera.yield {note = "kept"} }
}

// Two stages. A forward has two micro-batches, and a backward has one
// micro-batch or half of one. A part of 0 may be left out of the attributes.
// CHECK-LABEL: chimera.pipeline @ranges
// CHECK: %[[T:.*]] = chimera.load pipeline 0 stage 0 micro_batch 4 count 2 on 0 : !chimera.tokens<48>
// CHECK-NEXT: %[[Y:.*]], %[[S:.*]]:2 = chimera.forward pipeline 0 stage 0 micro_batch 4 count 2 on 0(%[[T]], %{{.*}}) : (!chimera.tokens<48>, !chimera.weights<64>) -> (!chimera.activation<16>, !chimera.stash<16>, !chimera.stash<16>)
// CHECK-NEXT: %[[L:.*]] = chimera.load pipeline 0 stage 1 micro_batch 4 count 2 on 1 : !chimera.labels<48>
// CHECK-NEXT: %[[E:.*]]:2 = chimera.forward pipeline 0 stage 1 micro_batch 4 count 2 on 1(%[[Y]], %{{.*}}, %[[L]])
// CHECK-NEXT: %[[R:.*]] = chimera.recompute pipeline 0 stage 1 micro_batch 5 slot 3 on 1 buffers [9](%[[Y]], %{{.*}}, %[[L]]) :
// CHECK-NEXT: chimera.input_gradient pipeline 0 stage 1 micro_batch 5 on 1(%[[R]], %[[E]]#1, %{{.*}})
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 5 part 0 of 2 on 0(%[[S]]#1,
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 5 part 1 of 2 on 0(%[[S]]#1,
// CHECK-NEXT: chimera.recompute pipeline 0 stage 0 micro_batch 4 part 1 of 2(%[[T]],
chimera.pipeline @ranges stages(2) micro_batches(8) schedule("gpipe") {
  chimera.step {
  ^bb0(%w0: !chimera.weights<64>, %o0: !chimera.optimizer_state<128>,
       %w1: !chimera.weights<32>, %o1: !chimera.optimizer_state<96>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 4 count 2 on 0 : !chimera.tokens<48>
    %y, %s:2 = chimera.forward pipeline 0 stage 0 micro_batch 4 count 2 on 0
        (%t, %w0) : (!chimera.tokens<48>, !chimera.weights<64>) ->
        (!chimera.activation<16>, !chimera.stash<16>, !chimera.stash<16>)
    %l = chimera.load pipeline 0 stage 1 micro_batch 4 count 2 on 1 : !chimera.labels<48>
    %e:2 = chimera.forward pipeline 0 stage 1 micro_batch 4 count 2 on 1
        (%y, %w1, %l) :
        (!chimera.activation<16>, !chimera.weights<32>, !chimera.labels<48>) ->
        (!chimera.loss<4>, !chimera.loss<4>)
    %r = chimera.recompute pipeline 0 stage 1 micro_batch 5 slot 3 on 1
        buffers [9] (%y, %w1, %l) :
        (!chimera.activation<16>, !chimera.weights<32>, !chimera.labels<48>) ->
        !chimera.stash<16>
    %i:2 = chimera.input_gradient pipeline 0 stage 1 micro_batch 5 on 1
        (%r, %e#1, %w1) :
        (!chimera.stash<16>, !chimera.loss<4>, !chimera.weights<32>) ->
        (!chimera.weight_stash<16>, !chimera.gradient<8>)
    %g1 = "chimera.backward"(%s#1, %i#1, %w0) {pipeline = 0 : i32,
        stage = 0 : i32, micro_batch = 5 : i32, parts = 2 : i32, worker = 0 : i32} :
        (!chimera.stash<16>, !chimera.gradient<8>, !chimera.weights<64>) ->
        !chimera.weight_gradient<64>
    %g2 = chimera.backward pipeline 0 stage 0 micro_batch 5 part 1 of 2 on 0
        (%s#1, %i#1, %w0, %g1) :
        (!chimera.stash<16>, !chimera.gradient<8>, !chimera.weights<64>,
         !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    %q = chimera.recompute pipeline 0 stage 0 micro_batch 4 part 1 of 2
        (%t, %w0) : (!chimera.tokens<48>, !chimera.weights<64>) ->
        !chimera.stash<8>
    chimera.yield %w0, %o0, %w1, %o1 : !chimera.weights<64>,
        !chimera.optimizer_state<128>, !chimera.weights<32>,
        !chimera.optimizer_state<96>
  }
}

// A prologue, a step and an epilogue. Two versions of weights, a stash and an
// activation are loop-carried.
// CHECK-LABEL: chimera.pipeline @overlapping
// CHECK: chimera.prologue {
// CHECK-NEXT: ^bb0(%[[W:.*]]: !chimera.weights<64>, %[[O:.*]]: !chimera.optimizer_state<128>, %[[X:.*]]: !chimera.weights<32>, %[[P:.*]]: !chimera.optimizer_state<96>):
// CHECK-NEXT: %[[V:.*]] = chimera.copy pipeline 0 stage 0 on 0 buffers [2] {note = "kept"}(%[[W]]) : <64>
// CHECK: chimera.yield %[[V]], %[[W]], %[[O]], %{{.*}}, %[[X]], %[[P]], %{{.*}} : !chimera.weights<64>, !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.stash<8>, !chimera.weights<32>, !chimera.optimizer_state<96>, !chimera.activation<24>
// CHECK: chimera.step {
// CHECK: chimera.optimizer_step pipeline 0 stage 0 micro_batch 1 on 0(
// CHECK: chimera.epilogue {
// CHECK: chimera.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
chimera.pipeline @overlapping stages(2) micro_batches(2) schedule("gpipe") {
  chimera.prologue {
  ^bb0(%w: !chimera.weights<64>, %o: !chimera.optimizer_state<128>,
       %x: !chimera.weights<32>, %p: !chimera.optimizer_state<96>):
    %v = chimera.copy pipeline 0 stage 0 on 0 buffers [2] {note = "kept"} (%w) :
        !chimera.weights<64>
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<24>
    %a, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %v) :
        (!chimera.tokens<24>, !chimera.weights<64>) ->
        (!chimera.activation<24>, !chimera.stash<8>)
    chimera.yield %v, %w, %o, %s, %x, %p, %a : !chimera.weights<64>,
        !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.stash<8>,
        !chimera.weights<32>, !chimera.optimizer_state<96>,
        !chimera.activation<24>
  }
  chimera.step {
  ^bb0(%v: !chimera.weights<64>, %w: !chimera.weights<64>,
       %o: !chimera.optimizer_state<128>, %s: !chimera.stash<8>,
       %x: !chimera.weights<32>, %p: !chimera.optimizer_state<96>,
       %a: !chimera.activation<24>):
    %l = chimera.load pipeline 0 stage 1 micro_batch 1 : !chimera.labels<24>
    %e, %z = chimera.forward pipeline 0 stage 1 micro_batch 1 (%a, %x, %l) :
        (!chimera.activation<24>, !chimera.weights<32>, !chimera.labels<24>) ->
        (!chimera.loss<8>, !chimera.stash<8>)
    %h, %d = chimera.backward pipeline 0 stage 1 micro_batch 1 (%z, %e, %x) :
        (!chimera.stash<8>, !chimera.loss<8>, !chimera.weights<32>) ->
        (!chimera.weight_gradient<32>, !chimera.gradient<24>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 1 (%s, %d, %v) :
        (!chimera.stash<8>, !chimera.gradient<24>, !chimera.weights<64>) ->
        !chimera.weight_gradient<64>
    %w1, %o1 = chimera.optimizer_step pipeline 0 stage 0 micro_batch 1 on 0
        (%w, %o, %g) : !chimera.weights<64>, !chimera.optimizer_state<128>,
        !chimera.weight_gradient<64>
    chimera.yield %w, %w1, %o1, %s, %x, %p, %a : !chimera.weights<64>,
        !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.stash<8>,
        !chimera.weights<32>, !chimera.optimizer_state<96>,
        !chimera.activation<24>
  }
  chimera.epilogue {
  ^bb0(%v: !chimera.weights<64>, %w: !chimera.weights<64>,
       %o: !chimera.optimizer_state<128>, %s: !chimera.stash<8>,
       %x: !chimera.weights<32>, %p: !chimera.optimizer_state<96>,
       %a: !chimera.activation<24>):
    chimera.yield %w, %o, %x, %p : !chimera.weights<64>,
        !chimera.optimizer_state<128>, !chimera.weights<32>,
        !chimera.optimizer_state<96>
  }
}
