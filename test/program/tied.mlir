// A tied embedding: edits that are refused.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-allocate -o %t.mlir
// RUN: chimera-opt %t.mlir --chimera-verify-program=messages=stream-per-pair -o /dev/null
//
// A join for a stage that has no tied parameters.
// RUN: %python %S/Inputs/edit.py replace 0 'chimera.join pipeline 0' 'pipeline 0 stage 0' 'pipeline 2 stage 2' < %t.mlir > %t.stage.mlir
// RUN: not chimera-opt %t.stage.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAGE
// STAGE: error: {{.*}}expected piece 0 of 2 of the gradient sum of the tied parameters of pipeline 2 stage 2, reduced like the others, got the gradient sum of the tied parameters of pipeline 0 stage 0, reduced
//
// The sum is not where the second replica's update expects it.
// RUN: %python %S/Inputs/edit.py drop 0 'chimera.overwrite' , replace 0 'chimera.join pipeline 1' '%%32' '%%21#1' < %t.mlir > %t.copy.mlir
// RUN: not chimera-opt %t.copy.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=COPY
// COPY: error: {{.*}}expected the gradient of tied parameters reduced over first and last stage, got that of one
chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied
chimera.pipeline @p of @m stages(4) micro_batches(4)
    schedule("chimera", {pipelines = 4}) weight_type(f64)
