// A tied embedding and one pipeline. A stage's own gradient is the whole gradient
// of all its parameters, except of the tied ones, which the other stage has, too.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-allocate -o %t.mlir
// RUN: chimera-opt %t.mlir --chimera-verify-program=messages=stream-per-pair -o /dev/null
//
// RUN: sed '/all_reduce_start stage 0 tied 1/d' %t.mlir > %t.cut.mlir
// RUN: sed '/chimera.wait.*arriving<!chimera.weight_gradient<160>>/d; /chimera.join pipeline 0 stage 0/s/(%%[0-9]*, \(%%[0-9]*\)#1)/(\1#0, \1#1)/; /chimera.join pipeline 0 stage 1/s/(\(%%[0-9]*\)#0, %%[0-9]*)/(\1#0, \1#1)/' %t.cut.mlir > %t.none.mlir
// RUN: not chimera-opt %t.none.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: worker 0 {{.*}}expected the gradient of tied parameters reduced over first and last stage, got that of one
chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe")
    weight_type(f64)
