// The times and sizes of a pipeline may have units. Then all of its times are
// in nanoseconds.
//
// RUN: chimera-opt %s | FileCheck %s
// RUN: chimera-opt %s | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --emit-bytecode | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=REPORT

// CHECK: chimera.pipeline @timed stages(2) micro_batches(1) schedule("gpipe") link <latency = 40 us, per_mib = 1 ms, send = 5 ns> {
// CHECK-NEXT: chimera.stage 0 cost <forward = 2 ms, backward = 4 ms, update = 500 us> bytes <weights = 3145728, optimizer = 0, stash = 2048, boundary = 1048576>
// REPORT: pipeline timed
// REPORT: unit of time ns
// REPORT: forward (f) 2 ms
// REPORT: p2p 40 us
// REPORT: and for bytes 1000000 for each 1048576 bytes
// The makespan is 2 times 2 ms, 2 times 4 ms, and two messages.
// REPORT: makespan 14.08 ms
chimera.pipeline @timed stages(2) micro_batches(1) schedule("gpipe")
    link <latency = 40 us, per_mib = 1 ms, send = 5 ns> {
  chimera.stage 0 cost <forward = 2 ms, backward = 4 ms, update = 500 us> bytes <weights = 3 MiB, optimizer = 0, stash = 2 KiB, boundary = 1 MiB>
  chimera.stage 1 cost <forward = 2 ms, backward = 4000000 ns> bytes <weights = 3 MiB, optimizer = 0, stash = 2 KiB, boundary = 1 MiB>
}

// A link may state its bandwidth. Then a cost without a unit is in nanoseconds.
// CHECK: chimera.pipeline @rated {{.*}} time_unit(ns) link <bandwidth = "9 GB/s", receive = 2 us>
// REPORT: pipeline rated
// REPORT: unit of time ns
// REPORT: forward (f) 7 ns
// REPORT: receive, occupies its worker 2000 ns
chimera.pipeline @rated stages(2) micro_batches(1) schedule("gpipe") time_unit(ns)
    link <bandwidth = "9 GB/s", receive = 2 us> {
  chimera.stage 0 cost <forward = 7, backward = 9> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
  chimera.stage 1 cost <forward = 7, backward = 9> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}
