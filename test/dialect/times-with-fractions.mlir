// Times without units may have fractions. They are kept exactly.
//
// RUN: chimera-opt %s | FileCheck %s
// RUN: chimera-opt %s | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --emit-bytecode | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=costs=stages -o /dev/null | FileCheck %s --check-prefix=TIMELINE

// A tick is a quarter, the longest time that divides all others.
// CHECK: chimera.pipeline @quarters {{.*}} link <latency = 0.25, per_mib = 0.5>
// CHECK-NEXT: chimera.stage 0 cost <forward = 0.5, backward = 1.5> bytes
// CHECK-NEXT: chimera.stage 1 cost <forward = 1, backward = 2, update = 10> bytes
// TIMELINE: quarters: 1f1b
// TIMELINE-NEXT: t 0 0.25 0.5 0.75 1
// TIMELINE-NEXT: P0 F0 = F1 = . . . . . . . . . . . . . . B0 = = = = =
// TIMELINE: makespan 9 (forward 0.5 to 1, backward 1.5 to 2, p2p 0.25 and 0.5 for each 1048576 bytes)
chimera.pipeline @quarters stages(2) micro_batches(2) schedule("1f1b") link <latency = 2.5e-1, per_mib = 0.5> {
  chimera.stage 0 cost <forward = 0.50, backward = 1.5> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
  chimera.stage 1 cost <forward = 1.0, backward = 2, update = 10> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}

// The halves of a backward with a fraction are equal.
// CHECK: chimera.stage 0 cost <forward = 1, backward = 2.5> bytes
// TIMELINE: halves: 1f1b
// TIMELINE: makespan 3.5 slot (forward 1 slot, input gradient 1.25 slot, weight gradient 1.25 slot, p2p 0 slot)
chimera.pipeline @halves stages(1) micro_batches(1) split_backward schedule("1f1b") time_unit(slot) {
  chimera.stage 0 cost <forward = 1, backward = 2.5> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}
