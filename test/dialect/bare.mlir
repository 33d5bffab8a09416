// A bare model: its layers have stated costs and sizes, and no parameters.
//
// RUN: chimera-opt %s | FileCheck %s
// RUN: chimera-opt %s | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --emit-bytecode | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --mlir-print-op-generic | chimera-opt | FileCheck %s

// CHECK:      chimera.model @sketch bare [
// CHECK-NEXT:   <forward = 1 MFLOP, parameters = 31000000, stash = 2 MiB, boundary = 512 KiB>,
// CHECK-NEXT:   <count = 48, forward = 3.4 GFLOP, backward = 7 GFLOP, parameters = 12600000, stash = 16 MiB, weight_stash = 17 MiB, boundary = 1 kB>]
chimera.model @sketch bare [
  <parameters = 31e6, forward = 1000000, stash = 2 MiB, boundary = 512 KiB, count = 1>,
  <count = 48, forward = 3.4 GFLOP, backward = 7 GFLOP, parameters = 12.6e6, stash = 16 MiB,
   weight_stash = 17 MiB, boundary = 1 kB>]

// The last layer has no boundary after it.
// CHECK:      chimera.model @end bare [
// CHECK-NEXT:   <forward = 1, parameters = 1, stash = 1, boundary = 1>,
// CHECK-NEXT:   <forward = 1, parameters = 1, stash = 1>]
chimera.model @end bare [<forward = 1, parameters = 1, stash = 1, boundary = 1>, <forward = 1, parameters = 1, stash = 1>]
