// The time of a whole step has three parts: actions, the all-reduces that do
// not overlap with actions, and updates.
//
// RUN: split-file %s %t
// RUN: chimera-opt %t/p.mlir --chimera-to-scheduled --chimera-report="forward=2 backward=4 update=1 p2p=1" -o /dev/null | FileCheck %s
// With two copies, an all-reduce takes two latencies. Two all-reduces come
// after the actions, because eager_opt starts those of stages 3 and 2 early.
// CHECK: step (mean of many) 44
// CHECK-NEXT: actions 39
// CHECK-NEXT: un-overlapped all-reduce 4
// CHECK-NEXT: updates 1
// CHECK-NEXT: for each sample 5.5
// CHECK-NEXT: makespan 39

// The grid shows all of a step. A is a wait for an all-reduce, U an update.
// RUN: chimera-opt %t/p.mlir --chimera-to-scheduled --chimera-print-timeline="forward=2 backward=4 update=1 p2p=1" -o /dev/null | FileCheck %s --check-prefix=GRID
// GRID: P0 {{.*}} B1 = = = u3 A0 = = U0{{$}}
// GRID: P1 {{.*}} B1 = = = u2 A1 = = U1 . . . . .{{$}}
// GRID: step 44 = actions 39 + un-overlapped all-reduce 4 + updates 1 (mean of many steps)

// RUN: chimera-opt %t/p.mlir --chimera-to-scheduled --chimera-print-timeline="forward=2 backward=4 update=1 p2p=1 format=chrome-trace" -o /dev/null | FileCheck %s --check-prefix=TRACE
// TRACE-DAG: {"name":"update of stage 3","cat":"update","ph":"X","ts":39,"dur":1,"pid":0,"tid":0}
// TRACE-DAG: {"name":"wait for all-reduce of stage 0","cat":"wait","ph":"X","ts":40,"dur":3,"pid":0,"tid":0}
// TRACE-DAG: {"name":"all-reduce of stage 0","cat":"all-reduce","ph":"X","ts":39,"dur":4,"pid":0,"tid":4}

// RUN: chimera-opt %t/p.mlir --chimera-to-scheduled --chimera-print-timeline="forward=2 backward=4 update=1 p2p=1 format=svg" -o /dev/null | FileCheck %s --check-prefix=SVG
// SVG-DAG: <title>update of stage 3, P0, time 39 to 40</title><rect class="update"
// SVG-DAG: <title>wait for all-reduce of stage 0, P0, time 40 to 43</title><rect class="wait"
// SVG-DAG: <title>all-reduce of stage 0, P0, time 39 to 43</title><rect class="all-reduce"

// Several pipelines, in the order of their time per sample.
// RUN: chimera-opt %t/many.mlir --chimera-to-scheduled --chimera-report="forward=2 backward=4 update=1 p2p=1 format=comparison unit=ms" -o /dev/null | FileCheck %s --check-prefix=MANY --match-full-lines
// MANY: pipeline  schedule       D  W  N  B    sample   step  actions  all-reduce  updates    idle  activations  peak bytes
// MANY-NEXT: gpipe     gpipe          4  2  8  2  {{.*}}
// MANY-NEXT: bw        pipedream-2bw  4  2  4  1  {{.*}}
// MANY-NEXT: both      chimera        4  2  4  1 {{ *}}5.5 ms {{.*}}
// MANY-NEXT: line      1f1b           4  2  4  1 {{ *}}6.875 ms {{.*}}

// The example of the root README.
// RUN: chimera-opt %examples/compare.mlir --chimera-to-scheduled --chimera-report="costs=stages format=comparison" -o /dev/null | FileCheck %s --check-prefix=EXAMPLE
// EXAMPLE: pipeline {{ *}}schedule
// EXAMPLE-NEXT: both_ways chimera {{.*}} 9.028 ms 577.8 ms
// EXAMPLE-NEXT: split zb-v {{.*}} 612.9 ms
// EXAMPLE-NEXT: one_way 1f1b {{.*}} 662.1 ms
// EXAMPLE-NEXT: deeper 1f1b {{.*}} 713.1 ms
// EXAMPLE-NEXT: looped interleaved-1f1b {{.*}} 771.3 ms

// A stage may state the time of its update.
// RUN: chimera-opt %t/own.mlir --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=OWN
// OWN: step (mean of many) 12 us
// OWN-NEXT: actions 9 us
// OWN-NEXT: un-overlapped all-reduce 0 us
// OWN-NEXT: updates 3 us
// RUN: chimera-compile %t/own.mlir -o %t/own
// RUN: chimera-translate --program-to-json %t/own | FileCheck %s --check-prefix=DUMP
// DUMP: "update": 3,

//--- p.mlir
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera") data_parallel(2) all_reduce(eager_opt)

//--- many.mlir
chimera.pipeline @line stages(4) micro_batches(4) schedule("1f1b") data_parallel(2)
chimera.pipeline @both stages(4) micro_batches(4) schedule("chimera") data_parallel(2) all_reduce(eager_opt)
chimera.pipeline @bw stages(4) micro_batches(4) schedule("pipedream-2bw") data_parallel(2)
chimera.pipeline @gpipe stages(4) micro_batches(8) schedule("gpipe") data_parallel(2) micro_batch_size(2)

//--- own.mlir
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe") time_unit(us) {
  chimera.stage 0 cost <forward = 1, backward = 2, update = 3> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2, update = 1> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}
