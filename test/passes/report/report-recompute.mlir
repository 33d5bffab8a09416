// If each forward comes directly before its backward, nothing is recomputed.
// The report says so.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report -o /dev/null | FileCheck %s
// CHECK: pipeline one
// CHECK: note {{ *}}nothing is recomputed: each forward is directly before its backward
// CHECK: pipeline several
// CHECK: without recomputes
// CHECK-NOT: nothing is recomputed
chimera.pipeline @one stages(4) micro_batches(4) schedule("gems") recompute(all)
chimera.pipeline @several stages(2) micro_batches(2) schedule("gpipe") recompute(all)
