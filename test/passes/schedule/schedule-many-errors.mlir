// Twenty violations are reported in full. Of the others, only the number is
// reported.
//
// RUN: not chimera-opt %s --mlir-print-op-on-diagnostic=false --chimera-verify-scheduled 2>&1 | FileCheck %s

// CHECK-COUNT-20: error: {{.*}} is missing
// CHECK: error: {{.*}} and 12 more violations
// CHECK-NOT: error
chimera.pipeline @p stages(1) micro_batches(16) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
  chimera.step { chimera.yield }
}
