// Times may have fractions. All times are shown in the unit, with fractions.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2.0 p2p=0.5" -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=remark
// CHECK: p: 1f1b, 2 stages, 2 micro-batches
// CHECK-NEXT: t 0 0.5 1 1.5 2 {{.*}} 9 9.5{{$}}
// CHECK-NEXT: P0 F0 = F1 = . . . . . . B0 = = = . . B1 = = ={{$}}
// CHECK: makespan 10 (forward 1, backward 2, p2p 0.5)
// CHECK-NEXT: bubble 40.0 % of the makespan; idle per worker: 4 4{{$}}

// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=0.5 unit=us format=svg" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SVG
// SVG: makespan 4.5 us (forward 0.5 us, backward 1 us, p2p 0 us)
// SVG: class="axis"{{.*}}>0.5</text>
// SVG: class="axis"{{.*}}>time in us</text>
// SVG: forward of micro-batch 0, stage 0, pipeline 0, P0, time in us 0 to 0.5<
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=50000.5 format=svg" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: makespan 450 × 10³ (forward 50 × 10³, backward 100 × 10³, p2p 0)
// LARGE: class="axis"{{.*}}>time in 10³</text>
// LARGE: P0, time 0 to 50000.5<
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=0.5 unit=ns format=chrome-trace" -o /dev/null | FileCheck %s --check-prefix=TRACE
// TRACE: "otherData":{"unit":{"p":"costs are in ns"}}
// TRACE: "name":"forward 1",{{.*}}"ts":0.0005,"dur":0.0005

// If the costs of stages are used, the times of messages have the same unit.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages p2p=2.5e-1" -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAGES --implicit-check-not=remark
// STAGES: makespan 9.5 us (forward 1 us, backward 2 us, p2p 0.25 us)
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="costs=stages send=.2 format=json" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT --implicit-check-not=remark
// REPORT: "time_unit": "us"
// REPORT-NEXT: "forward": 1,
// REPORT: "p2p": 3,
// REPORT: "send": 0.2,

// A number without a fraction is printed as a whole number.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1e0 backward=0.2e1 p2p=30.0e-1" -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHOLE --implicit-check-not=remark
// WHOLE: forward 1, backward 2, p2p 3
//
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1000000000000000000 p2p=0.01" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LONG
// LONG: error: chimera-print-timeline: expected times of fewer digits, got 1000000000000000000 and one with 2 digits after the point
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 p2p=-0.5" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: chimera-print-timeline: expected p2p of at least 0, got -0.5
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
    time_unit(us) link <latency = 3> {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}
