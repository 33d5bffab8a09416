// A forward and its recompute read the same input, which is stored once. So the
// peak is below the cap, both in the report and in the program.
//
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s
// CHECK: chimera.worker 0 {{.*}} arena 1000640 stashes 16 peak 1000{{[0-9]+}} at
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=REPORT
// REPORT: peak bytes per worker 1000{{[0-9]+}} B{{$}}
chimera.pipeline @once stages(2) micro_batches(1) workers(1) recompute([1]) memory_cap(1100000) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 8, optimizer = 8, stash = 8, boundary = 1000000>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 8, optimizer = 8, stash = 8, boundary = 8>
  chimera.direction 0 down on [0, 0] micro_batches [0]
  chimera.order 0 "0F0 1F0 1R0 1B0 0B0"
}
