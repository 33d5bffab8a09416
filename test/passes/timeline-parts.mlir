// Times need not be whole: all are then shown in a part of their unit.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2.0 p2p=0.5" -o /dev/null 2> %t.remark > %t.parts
// RUN: FileCheck %s < %t.remark
// CHECK: remark: chimera-print-timeline: times are shown in units of 0.5, in which all are whole
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=2 backward=4 p2p=1" -o /dev/null > %t.whole
// RUN: diff %t.parts %t.whole
//
// The stages' own costs and the description's link are in these units too.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages p2p=2.5e-1" -o /dev/null 2>/dev/null | FileCheck %s --check-prefix=STAGES
// STAGES: forward 4, backward 8, p2p 1
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="costs=stages send=.2 format=json" -o /dev/null 2>/dev/null | FileCheck %s --check-prefix=REPORT
// REPORT: "time_unit": "0.2 us"
//
// A number that is whole is, however it is written.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1e0 backward=0.2e1 p2p=30.0e-1" -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHOLE --implicit-check-not=remark
// WHOLE: forward 1, backward 2, p2p 3
//
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1000000000000000000 p2p=0.01" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LONG
// LONG: error: chimera-print-timeline: expected times of fewer digits, got 1000000000000000000 beside one of 2 digits behind the point
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 p2p=-0.5" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: chimera-print-timeline: expected p2p of at least 0, got -0.5
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
    time_unit(us) link <latency = 3> {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}
