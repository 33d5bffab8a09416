// Updates that clip gradients need the norm of the gradients of all stages.
//
// RUN: chimera-opt %s --chimera-partition --chimera-unroll --split-input-file | FileCheck %s

chimera.training @t clip_norm(1.0)

// Each replica counts its share of the squares. The shares of all replicas are
// summed, and each update uses the sum.
// CHECK-LABEL: chimera.pipeline @replicas
// CHECK: %[[A:.*]]:2 = chimera.all_reduce stage 1 width 1(
// CHECK-NEXT: %[[B:.*]]:2 = chimera.all_reduce stage 0 width 1(
// CHECK-NEXT: chimera.all_reduce stage 1 width 1({{.*}} -> !chimera.loss<8>
// CHECK-NEXT: %[[N0:.*]] = chimera.squared_norm pipeline 0 stage 0(%[[B]]#0) : (!chimera.weight_gradient<64>) -> !chimera.squared_norm<8>
// CHECK-NEXT: %[[N1:.*]] = chimera.squared_norm pipeline 0 stage 1(%[[A]]#0)
// CHECK-NEXT: %[[N2:.*]] = chimera.squared_norm pipeline 1 stage 0(%[[B]]#1)
// CHECK-NEXT: %[[N3:.*]] = chimera.squared_norm pipeline 1 stage 1(%[[A]]#1)
// CHECK-NEXT: %[[N:.*]]:4 = chimera.all_reduce stage 1 width 1(%[[N0]], %[[N1]], %[[N2]], %[[N3]])
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1({{.*}}, %[[A]]#0, %[[N]]#1)
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1({{.*}}, %[[A]]#1, %[[N]]#3)
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0({{.*}}, %[[B]]#0, %[[N]]#0)
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 0({{.*}}, %[[B]]#1, %[[N]]#2)
chimera.pipeline @replicas with @t stages(2) micro_batches(2) schedule("chimera")

// -----

chimera.training @t clip_norm(1.0)

// One replica of one stage knows the whole norm.
// CHECK-LABEL: chimera.pipeline @alone
// CHECK: %[[N:.*]] = chimera.squared_norm pipeline 0 stage 0(%[[G:.*]]) :
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0({{.*}}, %[[G]], %[[N]])
chimera.pipeline @alone with @t stages(1) micro_batches(1) schedule("gpipe")

// -----

chimera.training @t clip_norm(1.0)

// Copies of the pipeline are replicas, too.
// CHECK-LABEL: chimera.pipeline @copies
// CHECK: %[[N:.*]] = chimera.squared_norm
// CHECK-NEXT: %[[S:.*]] = chimera.all_reduce stage 0 width 3(%[[N]]) : (!chimera.squared_norm<8>) -> !chimera.squared_norm<8>
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0({{.*}}, %[[S]])
chimera.pipeline @copies with @t stages(1) micro_batches(1) schedule("gpipe") data_parallel(3)

// -----

chimera.training @t clip_norm(1.0)
chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied

// The pieces of a gradient with tied parameters are joined first.
// CHECK-LABEL: chimera.pipeline @tied
// CHECK: %[[G0:.*]] = chimera.join pipeline 0 stage 0
// CHECK-NEXT: %[[N0:.*]] = chimera.squared_norm pipeline 0 stage 0(%[[G0]])
// CHECK-NEXT: %[[G1:.*]] = chimera.join pipeline 0 stage 1
// CHECK-NEXT: %[[N1:.*]] = chimera.squared_norm pipeline 0 stage 1(%[[G1]])
// CHECK-NEXT: %[[N:.*]]:2 = chimera.all_reduce stage 1 width 1(%[[N0]], %[[N1]])
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 1({{.*}}, %[[G1]], %[[N]]#1)
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0({{.*}}, %[[G0]], %[[N]]#0)
chimera.pipeline @tied of @m with @t stages(2) micro_batches(2) schedule("gpipe")
    weight_type(f64)
