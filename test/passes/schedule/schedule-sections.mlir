// If steps overlap, each section gets its part of the schedule's order. An
// update comes directly after the gradient that it uses.
//
// RUN: chimera-opt %s --chimera-to-scheduled | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled | FileCheck %s --check-prefix=FIRST

// Worker 0: two forwards fill the pipeline, then a forward before each backward.
// CHECK-LABEL: @each
// CHECK: chimera.prologue
// CHECK: forward pipeline 0 stage 0 micro_batch 0 on 0
// CHECK: forward pipeline 0 stage 0 micro_batch 1 on 0
// CHECK-NOT: stage 0 micro_batch {{.*}} on 0
// CHECK: chimera.step
// CHECK: forward pipeline 0 stage 0 micro_batch 2 on 0
// CHECK: input_gradient pipeline 0 stage 0 micro_batch 0 on 0
// CHECK: %[[G0:.*]] = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 on 0({{[^,]*}}, {{[^,]*}}) :
// CHECK-NEXT: %[[R0:.*]] = chimera.all_reduce stage 0 width 2(%[[G0]])
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 micro_batch 0 on 0({{.*}}, %[[R0]])
// CHECK: forward pipeline 0 stage 0 micro_batch 3 on 0
// CHECK: input_gradient pipeline 0 stage 0 micro_batch 1 on 0
// CHECK: forward pipeline 0 stage 0 micro_batch 4 on 0
// CHECK: input_gradient pipeline 0 stage 0 micro_batch 2 on 0
// CHECK: optimizer_step pipeline 0 stage 0 micro_batch 2 on 0
// CHECK-NEXT: chimera.all_reduce stage 2 width 2({{.*}} : (!chimera.loss<8>, !chimera.loss<8>, !chimera.loss<8>)
// CHECK-NEXT: chimera.yield
// CHECK: chimera.epilogue
// CHECK: forward pipeline 0 stage 0 micro_batch 2 on 0
// CHECK: input_gradient pipeline 0 stage 0 micro_batch 0 on 0
// CHECK-NOT: forward pipeline 0 stage 0
// CHECK: input_gradient pipeline 0 stage 0 micro_batch 2 on 0

// Copies name their worker too.
// FIRST: chimera.copy pipeline 0 stage 0 on 0
// FIRST-NEXT: chimera.copy pipeline 0 stage 0 on 0
// FIRST-NEXT: chimera.copy pipeline 0 stage 1 on 1
chimera.pipeline @each stages(3) micro_batches(3) schedule("pipedream") data_parallel(2) split_backward

// One update comes after all actions. Each backward adds to the sum before it.
// CHECK-LABEL: @step
// CHECK: chimera.step
// CHECK: %[[G0:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0({{[^,]*}}, {{[^,]*}}, {{[^,]*}}) :
// CHECK: %[[G1:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 1 on 0({{.*}}, %[[G0]])
// CHECK: %[[G2:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 2 on 0({{.*}}, %[[G1]])
// CHECK: chimera.all_reduce
// CHECK: chimera.optimizer_step pipeline 0 stage 1 on 1
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0 on 0({{.*}}, %[[G2]])
// CHECK-NEXT: chimera.yield
chimera.pipeline @step stages(2) micro_batches(3) schedule("pipedream-2bw")
