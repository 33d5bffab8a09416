// Several stages of a pipeline on a worker: interleaved 1F1B and ZB-V, cell for
// cell as in their papers.
//
// RUN: split-file %s %t
// RUN: chimera-opt %t/looped.mlir --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2" -o %t/out | FileCheck %s --check-prefix=LOOPED --match-full-lines
// RUN: chimera-opt %t/folded.mlir --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2" -o %t/out | FileCheck %s --check-prefix=FOLDED --match-full-lines
// RUN: chimera-opt %t/looped.mlir --chimera-to-partitioned | FileCheck %s --check-prefix=PLACED
// RUN: chimera-opt %t/looped.mlir --chimera-to-scheduled --chimera-report="forward=1 backward=2" -o %t/out | FileCheck %s --check-prefix=REPORT
// RUN: chimera-opt %t/folded.mlir --chimera-to-scheduled --chimera-report -o %t/out | FileCheck %s --check-prefix=FLAT

// LOOPED: P0   F0  F1  F2  F3  F0' F1' F2' F3' F4  F5  F6  .   .   .   B0' =   F7  B1' =   .   F4' B2' =   F5' B3' =   F6' B0  =   F7' B1  =   B2  =   .   B3  =   .   B4'
// LOOPED: P1   .   F0  F1  F2  F3  F0' F1' F2' F3' F4  .   .   B0' =   F5  B1' =   F6  B2' =   F7  B3' =   F4' B0  =   F5' B1  =   F6' B2  =   F7' B3  =   .   B4' =   .
// LOOPED: P2   .   .   F0  F1  F2  F3  F0' F1' F2' .   B0' =   F3' B1' =   F4  B2' =   F5  B3' =   F6  B0  =   F7  B1  =   F4' B2  =   F5' B3  =   F6' B4' =   F7' B5' =
// LOOPED: P3   .   .   .   F0  F1  F2  F3  F0' B0' =   F1' B1' =   F2' B2' =   F3' B3' =   F4  B0  =   F5  B1  =   F6  B2  =   F7  B3  =   F4' B4' =   F5' B5' =   F6' B6'
// LOOPED: P0   =   .   B5' =   .   B6' =   .   B7' =   B4  =   B5  =   B6  =   B7  =
// LOOPED: P1   B5' =   .   B6' =   .   B7' =   B4  =   B5  =   B6  =   B7  =   .   .
// LOOPED: P2   .   B6' =   .   B7' =   B4  =   B5  =   B6  =   B7  =   .   .   .   .
// LOOPED: P3   =   F7' B7' =   B4  =   B5  =   B6  =   B7  =   .   .   .   .   .   .
// LOOPED: makespan 57 (forward 1, backward 2, p2p 0)
// LOOPED: peak activations per worker: 11 9 7 5

// FOLDED: P0   F0  F1  F2  F3  F4  F5  F6  F0' I0' W0' F1' I1' W1' F2' I2' W2' F3' I3' W3' F7  I0  W0  F4' I4' W4' I1  W1  F5' I5' W5' I2  W2  F6' I6' W6' I3  W3  F7' I7'
// FOLDED: P1   .   F0  F1  F2  F3  F4  F0' F5  F1' I0' W0' F2' I1' W1' F3' I2' W2' F6  I0  W0  F4' I3' W3' F7  I1  W1  F5' I4' W4' I2  W2  F6' I5' W5' I3  W3  F7' I6' W6'
// FOLDED: P2   .   .   F0  F1  F2  F0' F3  F1' F4  F2' I0' W0' F3' I1' W1' F5  I0  W0  F4' I2' W2' F6  I1  W1  F5' I3' W3' F7  I2  W2  F6' I4' W4' I3  W3  F7' I5' W5' I4
// FOLDED: P3   .   .   .   F0  F0' F1  F1' F2  F2' F3  F3' I0' W0' F4  I0  W0  F4' I1' W1' F5  I1  W1  F5' I2' W2' F6  I2  W2  F6' I3' W3' F7  I3  W3  F7' I4' W4' I4  I5'
// FOLDED: P0   W7' I4  W4  I5  W5  I6  W6  I7  W7  .   .   .
// FOLDED: P1   I4  I7' I5  W4  I6  W5  I7  W6  W7' W7  .   .
// FOLDED: P2   I6' I5  I7' I6  W4  I7  W5  W6' W7' W6  W7  .
// FOLDED: P3   I5  I6' I6  I7' I7  W4  W5' W6' W7' W5  W6  W7
// FOLDED: makespan 51 (forward 1, input gradient 1, weight gradient 1, p2p 0)
// FOLDED: peak activations per worker: 8 8 8 8

// PLACED: schedule("interleaved-1f1b") workers(4)
// PLACED: chimera.direction 0 down on [0, 1, 2, 3, 0, 1, 2, 3] micro_batches [0, 1, 2, 3, 4, 5, 6, 7]

// REPORT: workers (D) 4
// REPORT-NEXT: stages (S) 8
// REPORT: ratio, by formula 15.8 %
// REPORT-NEXT: formula (D-1)/(vN+D-1)
// REPORT: formula (v-1)G+1 to min(vN, (v-1)G+2D-1)

// FLAT: formula (D-1)/(6N+D-1)
// FLAT: formula 2D

//--- looped.mlir
chimera.pipeline @looped stages(8) micro_batches(8) schedule("interleaved-1f1b") workers(4)

//--- folded.mlir
chimera.pipeline @folded stages(8) micro_batches(8) schedule("zb-v") workers(4)
