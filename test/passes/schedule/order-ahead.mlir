// Weight gradients run after forwards of the next step, so micro-batches of
// both steps are in flight. The proof accepts the program, and its result is
// right.
//
// REQUIRES: runtime
// RUN: split-file %s %t && cd %t
// RUN: chimera-compile halves.mlir -o halves && hostile-run halves --models | FileCheck %s
// RUN: chimera-compile whole.mlir -o whole && hostile-run whole --models | FileCheck %s
// CHECK: 0 runs failed

//--- halves.mlir
chimera.pipeline @halves stages(2) micro_batches(2) updates(each_step) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 | F1 I0 F2 W0 I1 W1 | F1 I0 W0 I1 W1"
  chimera.order 1 "| F0 I0 W0 F1 I1 W1 | F0 I0 W0 F1 I1 W1"
}

//--- whole.mlir
chimera.pipeline @whole stages(2) micro_batches(2) updates(each_step) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 | F1 F2 B0 B1 | F1 B0 B1"
  chimera.order 1 "| F0 B0 F1 B1 | F0 B0 F1 B1"
}
