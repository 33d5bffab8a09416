// A report on the user's own order is like others, but has no formulas.
//
// RUN: chimera-opt %s --chimera-to-scheduled | sed 's/("1f1b")/("mine", {shape = "v"})/' > %t.mlir
// RUN: chimera-opt %t.mlir --chimera-report=forward=2 -o /dev/null | FileCheck %s --implicit-check-not=formula
// CHECK: p: mine {shape = v}, 2 stages, 3 micro-batches
// CHECK: schedule mine
// CHECK-NEXT: workers (D) 2
// CHECK-NEXT: stages (S) 2
// CHECK: makespan 24
// CHECK: gap to the highest 0.0 %
// CHECK-NEXT: note no formula is compared, because the order is given
chimera.pipeline @p stages(2) micro_batches(3) schedule("1f1b")
