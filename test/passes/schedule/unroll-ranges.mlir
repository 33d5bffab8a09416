// Forwards have several micro-batches, and backwards have parts of one.
//
// RUN: chimera-opt %s --chimera-unroll --split-input-file | FileCheck %s

// The loads, the output and the label of a forward have two micro-batches. On
// the last stage, the forward yields a loss for each. Each micro-batch has a
// backward of its own.
// CHECK-LABEL: chimera.pipeline @doubled
// CHECK: %[[T:.*]] = chimera.load pipeline 0 stage 0 micro_batch 0 count 2 : !chimera.tokens<128>
// CHECK-NEXT: %[[Y:.*]], %[[S0:.*]]:2 = chimera.forward pipeline 0 stage 0 micro_batch 0 count 2(%[[T]], {{.*}} -> (!chimera.activation<80>, !chimera.stash<30>, !chimera.stash<30>)
// CHECK-NEXT: chimera.load pipeline 0 stage 0 micro_batch 2 : !chimera.tokens<64>
// CHECK-NEXT: chimera.forward pipeline 0 stage 0 micro_batch 2({{.*}} -> (!chimera.activation<40>, !chimera.stash<30>)
// CHECK-NEXT: %[[L:.*]] = chimera.load pipeline 0 stage 1 micro_batch 0 count 2 : !chimera.labels<128>
// CHECK-NEXT: %[[E:.*]]:2, %[[S1:.*]]:2 = chimera.forward pipeline 0 stage 1 micro_batch 0 count 2(%[[Y]], %{{.*}}, %[[L]]) {{.*}} -> (!chimera.loss<8>, !chimera.loss<8>, !chimera.stash<30>, !chimera.stash<30>)
// CHECK-NEXT: chimera.load
// CHECK-NEXT: %[[E2:.*]], %[[S2:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 2(
// CHECK-NEXT: %{{.*}}, %[[D0:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 0(%[[S1]]#0, %[[E]]#0, {{.*}} -> (!chimera.weight_gradient<10>, !chimera.gradient<40>)
// CHECK-NEXT: %{{.*}}, %[[D1:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 1(%[[S1]]#1, %[[E]]#1,
// CHECK-NEXT: chimera.backward pipeline 0 stage 1 micro_batch 2(%[[S2]], %[[E2]],
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 0(%[[S0]]#0, %[[D0]],
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 1(%[[S0]]#1, %[[D1]],
// CHECK: chimera.all_reduce stage 1 width 1(%[[E]]#0, %[[E]]#1, %[[E2]])
chimera.pipeline @doubled stages(2) micro_batches(3) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 10, optimizer = 20, stash = 30, boundary = 40>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 10, optimizer = 20, stash = 30, boundary = 40>
  chimera.direction 0 down on [0, 1] micro_batches [0, 1, 2] forwards [2, 1]
  chimera.order 0 "F0-1 F2 B0 B1 B2"
  chimera.order 1 "F0-1 F2 B0 B1 B2"
}

// -----

// A backward has two parts. The stash and the gradient of a part have half of
// the bytes (a stash is rounded up).
// CHECK-LABEL: chimera.pipeline @halved
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 0({{.*}} -> (!chimera.activation<40>, !chimera.stash<16>, !chimera.stash<16>)
// CHECK: %[[E:.*]], %[[S:.*]]:2 = chimera.forward pipeline 0 stage 1 micro_batch 0({{.*}} -> (!chimera.loss<8>, !chimera.stash<15>, !chimera.stash<15>)
// CHECK-NEXT: %[[R:.*]], %[[D0:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 0 part 0 of 2(%[[S]]#0, %[[E]], %{{[^,]*}}) : {{.*}} -> (!chimera.weight_gradient<10>, !chimera.gradient<20>)
// CHECK-NEXT: %{{.*}}, %[[D1:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 0 part 1 of 2(%[[S]]#1, %[[E]], %{{.*}}, %[[R]])
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 0 part 0 of 2({{.*}}, %[[D0]],
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 0 part 1 of 2({{.*}}, %[[D1]],
chimera.pipeline @halved stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 10, optimizer = 20, stash = 31, boundary = 40>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 10, optimizer = 20, stash = 30, boundary = 40>
  chimera.direction 0 down on [0, 1] micro_batches [0] backward_parts 2
  chimera.order 0 "F0 B0.0 B0.1"
  chimera.order 1 "F0 B0.0 B0.1"
}
