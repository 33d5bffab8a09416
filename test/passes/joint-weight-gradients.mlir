// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages" -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-write-order | FileCheck %s --check-prefix=ORDER
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="costs=stages" -o /dev/null | FileCheck %s --check-prefix=REPORT
// RUN: chimera-opt %s --chimera-to-scheduled | chimera-opt --chimera-verify-scheduled -o /dev/null
// RUN: chimera-opt %s --chimera-to-scheduled | sed 's/ joined on/ on/' | chimera-opt --chimera-verify-scheduled --chimera-print-timeline="costs=stages" -o /dev/null | FileCheck %s --check-prefix=ALONE
// RUN: chimera-opt %s --chimera-to-scheduled | sed '/input_gradient pipeline 0 stage 0 micro_batch 0/,$s/\(weight_gradient pipeline 0 stage 0 micro_batch 2\) on/\1 joined on/' | not chimera-opt --chimera-verify-scheduled -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: chimera-opt %s --chimera-to-allocated -o /dev/null

// Each weight gradient of a joint one, except the last, takes its
// joined_weight_gradient.
// CHECK: P0 F0 = F1 = F2 = I0 = . . I1 = . . I2 = W0+ W1+ W2 = =
// CHECK: P1 . . F0 = I0 = F1 = I1 = F2 = I2 = W0+ W1+ W2 = =
// CHECK: W0+: joined with the next weight gradient
// CHECK: makespan 21 (forward 2, input gradient 2, weight gradient 3, joined weight gradient 1, p2p 0)

// REPORT: weight gradient 3
// REPORT-NEXT: each but the last of joined ones 1
// REPORT: lower bounds of the makespan LB1 = 15, LB2 = 17
// REPORT: gap to the highest 23.5 %

// ORDER: chimera.order 0 "F0 F1 F2 I0 I1 I2 W0+W1+W2"
// ORDER: chimera.order 1 "F0 I0 F1 I1 F2 I2 W0+W1+W2"

// ALONE: makespan 25

// WRONG: error: {{.*}}worker 0: weight_gradient of stage 0, micro-batch 2 cannot be joined with nothing: a joint weight gradient has weight gradients of one stage
chimera.pipeline @joint stages(2) micro_batches(3) {
  chimera.stage 0 cost <forward = 2, backward = 5, input_gradient = 2, weight_gradient = 3, joined_weight_gradient = 1>
    bytes <weights = 8, optimizer = 16, stash = 8, boundary = 8>
  chimera.stage 1 cost <forward = 2, backward = 5, input_gradient = 2, weight_gradient = 3, joined_weight_gradient = 1>
    bytes <weights = 8, optimizer = 16, stash = 8, boundary = 8>
  chimera.direction 0 down on [0, 1] micro_batches [0, 1, 2]
  chimera.order 0 "F0 F1 F2 I0 I1 I2 W0+W1+W2"
  chimera.order 1 "F0 I0 F1 I1 F2 I2 W0+W1+W2"
}
