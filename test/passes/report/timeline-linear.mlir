// The grids of GPipe and 1F1B, cell by cell, and the effects of options.
//
// RUN: chimera-opt %s --chimera-timeline --split-input-file -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=3 weight-gradient=1" --split-input-file -o /dev/null | FileCheck %s --check-prefix=SPLIT
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=1 p2p=2" --split-input-file -o /dev/null | FileCheck %s --check-prefix=P2P
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=4000000000 backward=5000000000 p2p=6000000000" --split-input-file -o /dev/null | FileCheck %s --check-prefix=NANOSECONDS
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1000000" --split-input-file -o /dev/null | FileCheck %s --check-prefix=WIDE
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=output=%t --split-input-file -o /dev/null | count 0
// RUN: FileCheck %s --check-prefix=FILE < %t

// Without slots and times, each action takes 1 and runs as soon as possible.
// CHECK: {{^}}gpipe, 3 stages, 3 micro-batches
// CHECK-NEXT: t  0  1  2  3  4  5  6  7  8  9{{$}}
// CHECK-NEXT: P0 F0 F1 F2 .  .  .  .  B0 B1 B2{{$}}
// CHECK-NEXT: P1 .  F0 F1 F2 .  .  B0 B1 B2 .{{$}}
// CHECK-NEXT: P2 .  .  F0 F1 F2 B0 B1 B2 .  .{{$}}
// CHECK-NEXT: makespan 10 (forward 1, backward 1, p2p 0)
// CHECK-NEXT: bubble 40.0 % of the makespan; idle per worker: 4 4 4{{$}}
// CHECK-NEXT: peak activations per worker: 3 3 3{{$}}
chimera.pipeline @gpipe stages(3) micro_batches(3) schedule("gpipe")

// -----

// CHECK: onefoneb: 1f1b, 3 stages, 4 micro-batches
// CHECK-NEXT: t  0  1  2  3  4  5  6  7  8  9  10 11{{$}}
// CHECK-NEXT: P0 F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3{{$}}
// CHECK-NEXT: P1 .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .{{$}}
// CHECK-NEXT: P2 .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .{{$}}
// CHECK-NEXT: makespan 12 (forward 1, backward 1, p2p 0)
// CHECK-NEXT: bubble 33.3 % of the makespan; idle per worker: 4 4 4{{$}}
// CHECK-NEXT: peak activations per worker: 3 2 1{{$}}
chimera.pipeline @onefoneb stages(3) micro_batches(4) schedule("1f1b")

// -----

// A backward of 3 has an input gradient of 2 and a weight gradient of 1, which
// comes directly after it. The previous stage waits only for the input
// gradient.
// SPLIT: split: 1f1b, 2 stages, 2 micro-batches
// SPLIT-NEXT: t  0  1  2  3  4  5  6  7  8  9  10{{$}}
// SPLIT-NEXT: P0 F0 F1 .  .  I0 =  W0 .  I1 =  W1{{$}}
// SPLIT-NEXT: P1 .  F0 I0 =  W0 F1 I1 =  W1 .  .{{$}}
// SPLIT-NEXT: (I: input gradient; W: weight gradient){{$}}
// SPLIT-NEXT: makespan 11 (forward 1, input gradient 2, weight gradient 1, p2p 0)
// SPLIT-NEXT: bubble 27.3 % of the makespan; idle per worker: 3 3{{$}}
// SPLIT-NEXT: peak activations per worker: 2 1{{$}}
chimera.pipeline @split stages(2) micro_batches(2) schedule("1f1b") split_backward

// -----

// A message takes two units from the end of an action to the other worker.
// P2P: latency: gpipe, 2 stages, 2 micro-batches
// P2P-NEXT: t  0  1  2  3  4  5  6  7  8  9{{$}}
// P2P-NEXT: P0 F0 F1 .  .  .  .  .  .  B0 B1{{$}}
// P2P-NEXT: P1 .  .  .  F0 F1 B0 B1 .  .  .{{$}}
// P2P-NEXT: makespan 10 (forward 1, backward 1, p2p 2)
// P2P-NEXT: bubble 60.0 % of the makespan; idle per worker: 6 6{{$}}
//
// WIDE: latency: gpipe, 2 stages, 2 micro-batches
// WIDE-NEXT: t 10⁶ 0 1 2 3 4 5 6 7 8{{$}}
// WIDE-NEXT: P0 F0 F1 . . . B0 = B1 ={{$}}
// WIDE-NEXT: P1 . F0 F1 B0 = B1 = . .{{$}}
// WIDE-NEXT: (a column is 1 × 10⁶)
// WIDE-NEXT: makespan 9000000 (forward 1000000, backward 2000000, p2p 0)
//
// NANOSECONDS: latency: gpipe, 2 stages, 2 micro-batches
// NANOSECONDS: makespan 39000000000 (forward 4000000000, backward 5000000000, p2p 6000000000)
//
// FILE: latency: gpipe, 2 stages, 2 micro-batches
// FILE-NEXT: t 0
chimera.pipeline @latency stages(2) micro_batches(2) schedule("gpipe")
