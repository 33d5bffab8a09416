// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages" -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-write-order | FileCheck %s --check-prefix=ORDER
// RUN: chimera-opt %s --chimera-to-scheduled | chimera-opt --chimera-verify-scheduled -o /dev/null
// RUN: chimera-opt %s --chimera-to-scheduled | sed 's/ joined on/ on/' | chimera-opt --chimera-verify-scheduled --chimera-print-timeline="costs=stages" -o /dev/null | FileCheck %s --check-prefix=ALONE
// RUN: chimera-opt %s --chimera-to-scheduled | sed '/forward pipeline 0 stage 0/s/micro_batch 0 on 0/micro_batch 0 joined on 0/' | not chimera-opt --chimera-verify-scheduled -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="costs=stages" -o /dev/null | FileCheck %s --check-prefix=REPORT

// A pair takes its paired_forward longer than its backward. The activation of
// its forward leaves at its end.
// CHECK: P0   F0  =   =   =   .   .   .   .   .   .   .   .   .   .   .   .   F1+ B0  =   =   =   =   =   =   =   .
// CHECK: P1   .   .   .   .   F0  =   =   =   B0  =   =   =   =   =   =   =   .   .   .   .   .   .   .   .   .   F1
// CHECK: (F1+: runs as one with the next action (a pair))
// CHECK: makespan 66 (forward 4, paired forward 1 to 4, backward 8, p2p 0)

// REPORT: forward (f) 4
// REPORT-NEXT: adds to a backward in a pair 1 4
// REPORT-NEXT: backward (b) 8

// ORDER: chimera.order 0 "F0 F1+B0 F2+B1 B2"
// ORDER: chimera.order 1 "F0 B0 F1 B1 F2 B2"

// ALONE: P0   F0  =   =   =   F1

// WRONG: error: {{.*}}worker 0: forward of stage 0, micro-batch 0 cannot be paired with forward of stage 0, micro-batch 1: a pair is a forward and then a backward or an input gradient
chimera.pipeline @pairs stages(2) micro_batches(3) {
  chimera.stage 0 cost <forward = 4, backward = 8, paired_forward = 1>
    bytes <weights = 8, optimizer = 16, stash = 8, boundary = 8>
  chimera.stage 1 cost <forward = 4, backward = 8>
    bytes <weights = 8, optimizer = 16, stash = 8, boundary = 8>
  chimera.direction 0 down on [0, 1] micro_batches [0, 1, 2]
  chimera.order 0 "F0 F1+B0 F2+B1 B2"
  chimera.order 1 "F0 B0 F1 B1 F2 B2"
}
