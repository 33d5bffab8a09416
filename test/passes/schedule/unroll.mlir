// RUN: chimera-opt %s --chimera-partition --chimera-unroll --split-input-file | FileCheck %s

// One pipeline, with every action of the step. The first backward of a stage
// starts the gradient sum, and each later one adds to it. One replica needs no
// all-reduce.
// CHECK-LABEL: chimera.pipeline @whole
// CHECK: chimera.step {
// CHECK-NEXT: ^bb0(%[[W0:.*]]: !chimera.weights<64>, %[[O0:.*]]: !chimera.optimizer_state<128>, %[[W1:.*]]: !chimera.weights<64>, %[[O1:.*]]: !chimera.optimizer_state<128>):
// CHECK-NEXT: %[[T0:.*]] = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<64>
// CHECK-NEXT: %[[Y0:.*]], %[[S00:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 0(%[[T0]], %[[W0]])
// CHECK-NEXT: chimera.load pipeline 0 stage 0 micro_batch 1
// CHECK-NEXT: %[[Y1:.*]], %[[S10:.*]] = chimera.forward pipeline 0 stage 0 micro_batch 1
// CHECK-NEXT: %[[L0:.*]] = chimera.load pipeline 0 stage 1 micro_batch 0 : !chimera.labels<64>
// CHECK-NEXT: %[[E0:.*]], %[[S01:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 0(%[[Y0]], %[[W1]], %[[L0]])
// CHECK-NEXT: %[[L1:.*]] = chimera.load pipeline 0 stage 1 micro_batch 1
// CHECK-NEXT: %[[E1:.*]], %[[S11:.*]] = chimera.forward pipeline 0 stage 1 micro_batch 1(%[[Y1]], %[[W1]], %[[L1]])
// CHECK-NEXT: %[[R10:.*]], %[[D0:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 0(%[[S01]], %[[E0]], %[[W1]]) :
// CHECK-NEXT: %[[R11:.*]], %[[D1:.*]] = chimera.backward pipeline 0 stage 1 micro_batch 1(%[[S11]], %[[E1]], %[[W1]], %[[R10]])
// CHECK-NEXT: %[[R00:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 0(%[[S00]], %[[D0]], %[[W0]]) :
// CHECK-NEXT: %[[R01:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 1(%[[S10]], %[[D1]], %[[W0]], %[[R00]])
// CHECK-NEXT: chimera.all_reduce stage 1 width 1(%[[E0]], %[[E1]]) : (!chimera.loss<8>, !chimera.loss<8>) -> !chimera.loss<8>
// CHECK-NEXT: %[[NW1:.*]], %[[NO1:.*]] = chimera.optimizer_step pipeline 0 stage 1(%[[W1]], %[[O1]], %[[R11]])
// CHECK-NEXT: %[[NW0:.*]], %[[NO0:.*]] = chimera.optimizer_step pipeline 0 stage 0(%[[W0]], %[[O0]], %[[R01]])
// CHECK-NEXT: chimera.yield %[[NW0]], %[[NO0]], %[[NW1]], %[[NO1]]
chimera.pipeline @whole stages(2) micro_batches(2) schedule("gpipe")

// -----

// The backward is split. The input gradient gives its stash to the weight
// gradient. Only the weight gradient starts the gradient sum.
// CHECK-LABEL: chimera.pipeline @split
// CHECK: %[[E:.*]], %[[S1:.*]] = chimera.forward pipeline 0 stage 1
// CHECK: %[[I1:.*]], %[[D:.*]] = chimera.input_gradient pipeline 0 stage 1 micro_batch 0(%[[S1]], %[[E]], %{{.*}})
// CHECK-NEXT: chimera.weight_gradient pipeline 0 stage 1 micro_batch 0(%[[I1]], %{{[^,]*}}) :
// CHECK-NEXT: %[[I0:.*]] = chimera.input_gradient pipeline 0 stage 0 micro_batch 0(%{{.*}}, %[[D]], %{{.*}})
// CHECK-NEXT: chimera.weight_gradient pipeline 0 stage 0 micro_batch 0(%[[I0]]
// CHECK-NOT: chimera.backward
chimera.pipeline @split stages(2) micro_batches(1) schedule("1f1b") split_backward

// -----

// With two directions, each stage has two replicas, whose gradients are summed:
// later stages first. Each replica has a result of its own.
// CHECK-LABEL: chimera.pipeline @replicas
// CHECK: %[[A:.*]]:2 = chimera.all_reduce stage 1 width 1(%{{.*}}, %{{.*}}) : (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>)
// CHECK-NEXT: %[[B:.*]]:2 = chimera.all_reduce stage 0 width 1(
// CHECK-NEXT: chimera.all_reduce stage 1 width 1({{.*}} -> !chimera.loss<8>
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1({{.*}}, %[[A]]#0)
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1({{.*}}, %[[A]]#1)
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0({{.*}}, %[[B]]#0)
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 0({{.*}}, %[[B]]#1)
chimera.pipeline @replicas stages(2) micro_batches(2) schedule("chimera")

// -----

// The copies of the pipeline are replicas, too. The width is their number.
// CHECK-LABEL: chimera.pipeline @copies
// CHECK: chimera.all_reduce stage 0 width 3(%{{[^,]*}}) : (!chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
// CHECK-NEXT: chimera.all_reduce stage 0 width 3(%{{[^,]*}}) : (!chimera.loss<8>) -> !chimera.loss<8>
chimera.pipeline @copies stages(1) micro_batches(1) schedule("gpipe") data_parallel(3)

// -----

// Tokens and labels are 64-bit integers: 2 samples of 16 tokens.
// CHECK-LABEL: chimera.pipeline @model
// CHECK: chimera.load {{.*}} : !chimera.tokens<256>
// CHECK: chimera.load {{.*}} : !chimera.labels<256>
chimera.model @gpt gpt2 layers(1) heads(1) width(8) context(16) vocabulary(256)
chimera.pipeline @model of @gpt stages(1) micro_batches(1) schedule("gpipe")
    micro_batch_size(2)
