// The head multiplies by the token embedding. The gradients of the first and of
// the last stage are cut: the part of this matrix is summed over both stages,
// and the rest over the replicas of each stage.
//
// RUN: chimera-opt %s --chimera-partition --chimera-unroll --split-input-file | FileCheck %s

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied

// The matrix has 20 elements of 8 bytes. They are the first parameters of stage
// 0 and the last ones of stage 1.
// CHECK-LABEL: chimera.pipeline @one
// CHECK: %[[LAST:.*]], %{{.*}} = chimera.backward pipeline 0 stage 1 micro_batch 1
// CHECK: %[[FIRST:.*]] = chimera.backward pipeline 0 stage 0 micro_batch 1
// CHECK-NEXT: %[[A:.*]]:2 = chimera.split pipeline 0 stage 0(%[[FIRST]]) : ({{.*}}) -> (!chimera.weight_gradient<160>, !chimera.weight_gradient<{{[0-9]+}}>)
// CHECK-NEXT: %[[B:.*]]:2 = chimera.split pipeline 0 stage 1(%[[LAST]]) : ({{.*}}) -> (!chimera.weight_gradient<{{[0-9]+}}>, !chimera.weight_gradient<160>)
// With one pipeline and one copy, nothing else is summed.
// CHECK-NEXT: %[[T:.*]]:2 = chimera.all_reduce stage 0 tied 1 width 1(%[[A]]#0, %[[B]]#1)
// CHECK-NEXT: chimera.all_reduce stage 1 width 1({{.*}} -> !chimera.loss<8>
// CHECK-NEXT: %[[G1:.*]] = chimera.join pipeline 0 stage 1(%[[B]]#0, %[[T]]#1)
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1({{.*}}, %[[G1]])
// CHECK-NEXT: %[[G0:.*]] = chimera.join pipeline 0 stage 0(%[[T]]#0, %[[A]]#1)
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0({{.*}}, %[[G0]])
chimera.pipeline @one of @m stages(2) micro_batches(2) schedule("gpipe")
    weight_type(f64)

// -----

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied

// For each pipeline, the first and the last stage alternate. The stage whose
// gradient is complete first is updated first.
// CHECK-LABEL: chimera.pipeline @both
// CHECK: %[[A:.*]]:2 = chimera.split pipeline 0 stage 0
// CHECK-NEXT: %[[B:.*]]:2 = chimera.split pipeline 0 stage 2
// CHECK-NEXT: %[[C:.*]]:2 = chimera.split pipeline 1 stage 0
// CHECK-NEXT: %[[D:.*]]:2 = chimera.split pipeline 1 stage 2
// CHECK-NEXT: chimera.all_reduce stage 2 width 2(%[[B]]#0, %[[D]]#0)
// CHECK-NEXT: chimera.all_reduce stage 1 width 2
// CHECK-NEXT: chimera.all_reduce stage 0 width 2(%[[A]]#1, %[[C]]#1)
// CHECK-NEXT: %[[T:.*]]:4 = chimera.all_reduce stage 0 tied 2 width 2(%[[A]]#0, %[[B]]#1, %[[C]]#0, %[[D]]#1)
// CHECK: chimera.optimizer_step pipeline 0 stage 1
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1
// CHECK-NEXT: chimera.join pipeline 0 stage 2(%{{.*}}, %[[T]]#1)
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 2
// CHECK-NEXT: chimera.join pipeline 1 stage 2(%{{.*}}, %[[T]]#3)
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 2
// CHECK-NEXT: chimera.join pipeline 0 stage 0(%[[T]]#0, %{{.*}})
chimera.pipeline @both of @m stages(3) micro_batches(4) schedule("gems")
    data_parallel(2)

// -----

chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied

// If there is one stage, it has the matrix only once.
// CHECK-LABEL: chimera.pipeline @alone
// CHECK-NOT: chimera.split
chimera.pipeline @alone of @m stages(1) micro_batches(2) schedule("gpipe")
