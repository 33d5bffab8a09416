// A bare model is cut like any other model. Its stages have no layers to train.
//
// RUN: split-file %s %t
// RUN: chimera-opt %t/model.mlir --chimera-partition | FileCheck %s
// RUN: chimera-compile %t/model.mlir -o %t/program
// RUN: chimera-translate --program-to-json %t/program | FileCheck %s --check-prefix=PROGRAM

// Three layers have 100 operations each, and one has 300, for each of two
// samples. The overhead of a layer is added to a forward and to each half of a
// backward.
// CHECK: time_unit(ns)
// CHECK-NEXT: chimera.stage 0 cost <forward = 630, backward = 1260> bytes <weights = 120, optimizer = 240, stash = 60, boundary = 14, weight_stash = 60>
// CHECK-NEXT: chimera.stage 1 cost <forward = 610, backward = 1220> bytes <weights = 20, optimizer = 40, stash = 80, boundary = 18, weight_stash = 100>
// PROGRAM: "model": null

// A recomputed stage runs its forward twice. So it gets fewer layers.
// RUN: chimera-opt %t/recompute.mlir --chimera-partition | FileCheck %s --check-prefix=AGAIN
// AGAIN: chimera.stage 0 cost <forward = 3,
// AGAIN-NEXT: chimera.stage 1 cost <forward = 4,

//--- model.mlir
chimera.machine @machine devices(2) memory(1 MiB) speed("1 GFLOP/s") layer_overhead(10 ns)
chimera.model @m bare [
  <count = 3, forward = 100, parameters = 10, stash = 10, boundary = 7>,
  <forward = 300, parameters = 5, stash = 40, weight_stash = 50, boundary = 9>]
chimera.pipeline @p of @m on @machine stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(2)

//--- recompute.mlir
chimera.model @m bare [<count = 7, forward = 1, parameters = 10, stash = 10, boundary = 7>]
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("1f1b") recompute([0])
