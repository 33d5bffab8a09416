// The tables of Chimera's paper, cell by cell, for D = N = 4 and D = N = 8. One
// is in slots of equal length (Figure 3, upper right). The other is in times,
// with actions as soon as possible and backwards of twice the forward.
//
// RUN: chimera-opt %s --chimera-timeline -o /dev/null | FileCheck %s --check-prefix=SLOTS
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2" -o /dev/null | FileCheck %s --check-prefix=TIMES
// By default, a backward takes twice the forward, and times have no unit.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=1 -o /dev/null | FileCheck %s --check-prefix=TIMES
// A projected or allocated pipeline has the same timeline.
// RUN: chimera-opt %s --chimera-to-projected --chimera-print-timeline -o /dev/null | FileCheck %s --check-prefix=SLOTS
// RUN: chimera-opt %s --chimera-to-allocated --chimera-print-timeline=forward=1 -o /dev/null | FileCheck %s --check-prefix=TIMES

// SLOTS: d4: chimera, 4 stages, 4 micro-batches
// SLOTS-NEXT: slot 0 1 2 3 4 5 6 7 8 9{{$}}
// SLOTS-NEXT: P0 F0 . F1 f2 b2 f3 b3 B0 . B1{{$}}
// SLOTS-NEXT: P1 . F0 f2 F1 f3 b2 B0 b3 B1 .{{$}}
// SLOTS-NEXT: P2 . f2 F0 f3 F1 B0 b2 B1 b3 .{{$}}
// SLOTS-NEXT: P3 f2 . f3 F0 B0 F1 B1 b2 . b3{{$}}
// SLOTS-NEXT: (small letters: the pipeline whose activations go up the workers){{$}}
// SLOTS-NEXT: makespan 10 (one slot each)
// SLOTS-NEXT: bubble 20.0 % of the makespan; idle per worker: 2 2 2 2
// SLOTS-NEXT: peak activations per worker: 3 4 4 3{{$}}

// TIMES: d4: chimera, 4 stages, 4 micro-batches
// TIMES-NEXT: t 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15{{$}}
// TIMES-NEXT: P0 F0 F1 . f2 b2 = f3 b3 = . B0 = . . B1 ={{$}}
// TIMES-NEXT: P1 . F0 f2 F1 f3 . b2 = B0 = b3 = B1 = . .{{$}}
// TIMES-NEXT: P2 . f2 F0 f3 F1 . B0 = b2 = B1 = b3 = . .{{$}}
// TIMES-NEXT: P3 f2 f3 . F0 B0 = F1 B1 = . b2 = . . b3 ={{$}}
// TIMES-NEXT: (small letters: the pipeline whose activations go up the workers){{$}}
// TIMES-NEXT: makespan 16 (forward 1, backward 2, p2p 0)
// TIMES-NEXT: bubble 25.0 % of the makespan; idle per worker: 4 4 4 4
// TIMES-NEXT: peak activations per worker: 3 4 4 3{{$}}
chimera.pipeline @d4 stages(4) micro_batches(4) schedule("chimera")

// SLOTS: d8: chimera, 8 stages, 8 micro-batches
// SLOTS-NEXT: slot 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21{{$}}
// SLOTS-NEXT: P0 F0 . F1 . F2 . F3 f4 b4 f5 b5 f6 b6 f7 b7 B0 . B1 . B2 . B3{{$}}
// SLOTS-NEXT: P1 . F0 . F1 . F2 f4 F3 f5 b4 f6 b5 f7 b6 B0 b7 B1 . B2 . B3 .{{$}}
// SLOTS-NEXT: P2 . . F0 . F1 f4 F2 f5 F3 f6 b4 f7 b5 B0 b6 B1 b7 B2 . B3 . .{{$}}
// SLOTS-NEXT: P3 . . . F0 f4 F1 f5 F2 f6 F3 f7 b4 B0 b5 B1 b6 B2 b7 B3 . . .{{$}}
// SLOTS-NEXT: P4 . . . f4 F0 f5 F1 f6 F2 f7 F3 B0 b4 B1 b5 B2 b6 B3 b7 . . .{{$}}
// SLOTS-NEXT: P5 . . f4 . f5 F0 f6 F1 f7 F2 B0 F3 B1 b4 B2 b5 B3 b6 . b7 . .{{$}}
// SLOTS-NEXT: P6 . f4 . f5 . f6 F0 f7 F1 B0 F2 B1 F3 B2 b4 B3 b5 . b6 . b7 .{{$}}
// SLOTS-NEXT: P7 f4 . f5 . f6 . f7 F0 B0 F1 B1 F2 B2 F3 B3 b4 . b5 . b6 . b7{{$}}
// SLOTS-NEXT: (small letters: the pipeline whose activations go up the workers){{$}}
// SLOTS-NEXT: makespan 22 (one slot each)
// SLOTS-NEXT: bubble 27.3 % of the makespan; idle per worker: 6 6 6 6 6 6 6 6
// SLOTS-NEXT: peak activations per worker: 5 6 7 8 8 7 6 5{{$}}

// TIMES: d8: chimera, 8 stages, 8 micro-batches
// TIMES-NEXT: t 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35{{$}}
// TIMES-NEXT: P0 F0 F1 F2 F3 . . . f4 b4 = f5 b5 = f6 b6 = f7 b7 = . . . B0 = . . B1 = . . B2 = . . B3 ={{$}}
// TIMES-NEXT: P1 . F0 F1 F2 . . f4 F3 f5 . b4 = f6 b5 = f7 b6 = . . B0 = b7 = B1 = . . B2 = . . B3 = . .{{$}}
// TIMES-NEXT: P2 . . F0 F1 . f4 F2 f5 F3 f6 . . b4 = f7 b5 = . B0 = b6 = B1 = b7 = B2 = . . B3 = . . . .{{$}}
// TIMES-NEXT: P3 . . . F0 f4 F1 f5 F2 f6 F3 f7 . . . b4 = B0 = b5 = B1 = b6 = B2 = b7 = B3 = . . . . . .{{$}}
// TIMES-NEXT: P4 . . . f4 F0 f5 F1 f6 F2 f7 F3 . . . B0 = b4 = B1 = b5 = B2 = b6 = B3 = b7 = . . . . . .{{$}}
// TIMES-NEXT: P5 . . f4 f5 . F0 f6 F1 f7 F2 . . B0 = F3 B1 = . b4 = B2 = b5 = B3 = b6 = . . b7 = . . . .{{$}}
// TIMES-NEXT: P6 . f4 f5 f6 . . F0 f7 F1 . B0 = F2 B1 = F3 B2 = . . b4 = B3 = b5 = . . b6 = . . b7 = . .{{$}}
// TIMES-NEXT: P7 f4 f5 f6 f7 . . . F0 B0 = F1 B1 = F2 B2 = F3 B3 = . . . b4 = . . b5 = . . b6 = . . b7 ={{$}}
// TIMES-NEXT: (small letters: the pipeline whose activations go up the workers){{$}}
// TIMES-NEXT: makespan 36 (forward 1, backward 2, p2p 0)
// TIMES-NEXT: bubble 33.3 % of the makespan; idle per worker: 12 12 12 12 12 12 12 12
// TIMES-NEXT: peak activations per worker: 5 6 7 8 8 7 6 5{{$}}
chimera.pipeline @d8 stages(8) micro_batches(8) schedule("chimera")
