// RUN: chimera-opt %s --chimera-partition --chimera-unroll --chimera-schedule --split-input-file | FileCheck %s

// D = 2, N = 2: the block's order is that of the starts, then of the workers;
// loads come before their uses.
// CHECK-LABEL: chimera.pipeline @chimera
// CHECK: chimera.load pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NEXT: chimera.forward pipeline 0 stage 0 micro_batch 0 slot 0 on 0
// CHECK-NEXT: chimera.load pipeline 1 stage 0 micro_batch 1 on 1
// CHECK-NEXT: chimera.forward pipeline 1 stage 0 micro_batch 1 slot 0 on 1
// CHECK-NEXT: chimera.load pipeline 1 stage 1 micro_batch 1 on 0
// CHECK-NEXT: chimera.forward pipeline 1 stage 1 micro_batch 1 slot 1 on 0
// CHECK-NEXT: chimera.load pipeline 0 stage 1 micro_batch 0 on 1
// CHECK-NEXT: chimera.forward pipeline 0 stage 1 micro_batch 0 slot 1 on 1
// CHECK-NEXT: chimera.backward pipeline 1 stage 1 micro_batch 1 slot 2 on 0
// CHECK-NEXT: chimera.backward pipeline 0 stage 1 micro_batch 0 slot 2 on 1
// CHECK-NEXT: chimera.backward pipeline 0 stage 0 micro_batch 0 slot 3 on 0
// CHECK-NEXT: chimera.backward pipeline 1 stage 0 micro_batch 1 slot 3 on 1
// CHECK-NEXT: chimera.all_reduce stage 1
// CHECK-NEXT: chimera.all_reduce stage 0
// CHECK-NEXT: chimera.all_reduce stage 1
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1 on 1
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1 on 0
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 on 0
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 0 on 1
// CHECK-NEXT: chimera.yield
chimera.pipeline @chimera stages(2) micro_batches(2) schedule("chimera")

// -----

// The costs of stages decide the order of the block: stage 1 is slow, so two
// forwards of stage 0 come first. 1F1B has no slots.
// CHECK-LABEL: chimera.pipeline @costs
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 0 on 0
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 1 on 0
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 0 on 1
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 0 on 1
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 0 on 0
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 1 on 1
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 2 on 0
// CHECK-NOT: slot
chimera.pipeline @costs stages(2) micro_batches(3) schedule("1f1b") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 9, backward = 9>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

// If a backward is split, its weight gradient adds to the gradient sum. It
// comes directly after the input gradient.
// CHECK-LABEL: chimera.pipeline @sums
// CHECK: chimera.input_gradient pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NEXT: %[[A:.*]] = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 on 0({{[^,]*}}, {{[^,]*}}) :
// CHECK-NEXT: chimera.input_gradient pipeline 0 stage 0 micro_batch 1 on 0
// CHECK-NEXT: %[[B:.*]] = chimera.weight_gradient pipeline 0 stage 0 micro_batch 1 on 0({{.*}}, %[[A]])
// CHECK-NEXT: chimera.input_gradient pipeline 0 stage 0 micro_batch 2 on 0
// CHECK-NEXT: %[[C:.*]] = chimera.weight_gradient pipeline 0 stage 0 micro_batch 2 on 0({{.*}}, %[[B]])
// CHECK: chimera.optimizer_step pipeline 0 stage 0 on 0({{.*}}, %[[C]])
chimera.pipeline @sums stages(1) micro_batches(3) schedule("gpipe") split_backward
