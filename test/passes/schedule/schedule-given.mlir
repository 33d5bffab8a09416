// Orders that are given as text: looped breadth-first (Lamy-Poirier, "Breadth-First
// Pipeline Parallelism", MLSys'23), and one with whole and split backwards.
//
// RUN: split-file %s %t
// RUN: chimera-opt %t/breadth-first.mlir --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2" -o %t/out | FileCheck %s --check-prefix=BREADTH --match-full-lines
// RUN: chimera-opt %t/breadth-first.mlir --chimera-to-scheduled --chimera-report="forward=1 backward=2" -o %t/out | FileCheck %s --check-prefix=REPORT
// RUN: chimera-opt %t/mixed.mlir --chimera-timeline -o %t/out | FileCheck %s --check-prefix=MIXED --match-full-lines
// RUN: chimera-opt %t/mixed.mlir --chimera-to-scheduled | FileCheck %s --check-prefix=OPS
// RUN: chimera-opt %t/mixed.mlir --chimera-to-allocated -o %t/out
// RUN: chimera-opt %examples/order.mlir --chimera-timeline -o %t/out | FileCheck %s --check-prefix=EXAMPLE
// EXAMPLE: makespan 11

// If an order is written and read again, it is the same.
// RUN: chimera-opt %t/mixed.mlir --chimera-to-scheduled --chimera-write-order -o %t/written
// RUN: FileCheck %s --check-prefix=WRITTEN --match-full-lines < %t/written
// RUN: chimera-opt %t/written --chimera-to-allocated --chimera-write-order | diff %t/written -
// RUN: chimera-opt %t/recomputed.mlir --chimera-to-scheduled --chimera-write-order -o %t/written
// RUN: FileCheck %s --check-prefix=AGAIN --match-full-lines < %t/written
// RUN: chimera-opt %t/written --chimera-to-scheduled --chimera-write-order | diff %t/written -
// RUN: chimera-opt %t/schemes.mlir --chimera-to-scheduled --chimera-write-order -o %t/written
// RUN: FileCheck %s --check-prefix=SCHEMES --match-full-lines < %t/written
// RUN: chimera-opt %t/written --chimera-to-synchronised --chimera-write-order | diff %t/written -

// BREADTH: P0   F0  F1  F2  F3  F4  F5  F6  F7  F0' F1' F2' F3' F4' F5' F6' F7' .   .   .   .   .   .   .   .   .   B0' =   B1' =   B2' =   B3' =   B4' =   B5' =   B6' =
// BREADTH: P1   .   F0  F1  F2  F3  F4  F5  F6  F7  F0' F1' F2' F3' F4' F5' F6' F7' .   .   .   .   .   .   B0' =   B1' =   B2' =   B3' =   B4' =   B5' =   B6' =   B7' =
// BREADTH: P2   .   .   F0  F1  F2  F3  F4  F5  F6  F7  F0' F1' F2' F3' F4' F5' F6' F7' .   .   .   B0' =   B1' =   B2' =   B3' =   B4' =   B5' =   B6' =   B7' =   B0  =
// BREADTH: P3   .   .   .   F0  F1  F2  F3  F4  F5  F6  F7  F0' F1' F2' F3' F4' F5' F6' F7' B0' =   B1' =   B2' =   B3' =   B4' =   B5' =   B6' =   B7' =   B0  =   B1  =
// BREADTH: P0   B7' =   B0  =   B1  =   B2  =   B3  =   B4  =   B5  =   B6  =   B7  =
// BREADTH: P1   B0  =   B1  =   B2  =   B3  =   B4  =   B5  =   B6  =   B7  =   .   .
// BREADTH: P2   B1  =   B2  =   B3  =   B4  =   B5  =   B6  =   B7  =   .   .   .   .
// BREADTH: P3   B2  =   B3  =   B4  =   B5  =   B6  =   B7  =   .   .   .   .   .   .
// BREADTH: makespan 57 (forward 1, backward 2, p2p 0)
// BREADTH: peak activations per worker: 16 16 16 16

// REPORT: schedule given
// REPORT: makespan 57
// REPORT: bubble (makespan less load) 9
// REPORT: peak activations per worker 16 16 16 16
// REPORT: gap to the highest 0.0 %
// REPORT: note no formula is compared, because the order is given

// MIXED: mixed: given order, 2 stages, 3 micro-batches
// MIXED: t    0  1  2  3  4  5  6  7  8  9
// MIXED: P0   F0 F1 .  I0 F2 B1 .  I2 W0 W2
// MIXED: P1   .  F0 B0 F1 B1 F2 B2 .  .  .
// MIXED: makespan 10 (forward 1, backward 1, input gradient 1, weight gradient 1, p2p 0)
// MIXED: bubble 30.0 % of the makespan; idle per worker: 2 4
// MIXED: peak activations per worker: 3 1

// OPS: chimera.forward pipeline 0 stage 0 micro_batch 0 on 0
// OPS: chimera.forward pipeline 0 stage 0 micro_batch 1 on 0
// OPS: chimera.forward pipeline 0 stage 1 micro_batch 0 on 1
// OPS: chimera.backward pipeline 0 stage 1 micro_batch 0 on 1
// OPS: chimera.input_gradient pipeline 0 stage 0 micro_batch 0 on 0
// OPS: chimera.forward pipeline 0 stage 1 micro_batch 1 on 1
// OPS: chimera.forward pipeline 0 stage 0 micro_batch 2 on 0
// OPS: chimera.backward pipeline 0 stage 1 micro_batch 1 on 1
// OPS: chimera.backward pipeline 0 stage 0 micro_batch 1 on 0
// OPS: chimera.forward pipeline 0 stage 1 micro_batch 2 on 1
// OPS: chimera.backward pipeline 0 stage 1 micro_batch 2 on 1
// OPS: chimera.input_gradient pipeline 0 stage 0 micro_batch 2 on 0
// OPS: chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 on 0
// OPS: chimera.weight_gradient pipeline 0 stage 0 micro_batch 2 on 0
// OPS-NOT: chimera.order

// WRITTEN:  chimera.pipeline @mixed stages(2) micro_batches(3) time_unit(slot) {
// WRITTEN:    chimera.direction 0 down on [0, 1] micro_batches [0, 1, 2]
// WRITTEN:    chimera.order 0 "F0 F1 I0 F2 B1 I2 W0 W2"
// WRITTEN:    chimera.order 1 "F0 B0 F1 B1 F2 B2"

// AGAIN:  chimera.pipeline @recomputed stages(2) micro_batches(2) recompute([0]) time_unit(slot) {
// AGAIN:    chimera.direction 0 down on [0, 1] micro_batches [0, 1]
// AGAIN:    chimera.order 0 "F0 F1 R0 R1 B0 B1"
// AGAIN:    chimera.order 1 "F0 B0 F1 B1"

// SCHEMES:  chimera.pipeline @slots stages(4) micro_batches(4) time_unit(slot) {
// SCHEMES:    chimera.direction 0 down on [0, 1, 2, 3] micro_batches [0, 1]
// SCHEMES:    chimera.direction 1 up on [3, 2, 1, 0] micro_batches [2, 3]
// SCHEMES:    chimera.order 0 "F0 . F1 F2 B2 F3 B3 B0 . B1"
// SCHEMES:    chimera.order 1 ". F0 F2 F1 F3 B2 B0 B3 B1"
// SCHEMES:    chimera.order 2 ". F2 F0 F3 F1 B0 B2 B1 B3"
// SCHEMES:    chimera.order 3 "F2 . F3 F0 B0 F1 B1 B2 . B3"
// SCHEMES:  chimera.pipeline @taken stages(2) micro_batches(2) time_unit(slot) {
// SCHEMES:    chimera.direction 0 down on [0, 1] micro_batches [0]
// SCHEMES:    chimera.direction 1 up on [1, 0] micro_batches [1]
// SCHEMES:    chimera.order 0 ".0 F0 F1 B1 B0"
// SCHEMES:    chimera.order 1 ".0 F1 F0 B0 B1"
// SCHEMES:  chimera.pipeline @ranges stages(2) micro_batches(8) time_unit(slot) {
// SCHEMES:    chimera.direction 0 down on [0, 1] micro_batches [0, 1, 4, 5] forwards [2, 2]
// SCHEMES:    chimera.direction 1 up on [1, 0] micro_batches [2, 3, 6, 7] forwards [2, 2]
// SCHEMES:    chimera.order 0 ".0 F0-1 F2-3 B2 B0 B3 B1 F4-5 F6-7 B6 B4 B7 B5"
// SCHEMES:    chimera.order 1 ".0 F2-3 F0-1 B0 B2 B1 B3 F6-7 F4-5 B4 B6 B5 B7"
// SCHEMES:  chimera.pipeline @parts stages(2) micro_batches(4) recompute(all) time_unit(slot) {
// SCHEMES:    chimera.direction 0 down on [0, 1] micro_batches [0, 2] backward_parts 2
// SCHEMES:    chimera.direction 1 up on [1, 0] micro_batches [1, 3] backward_parts 2
// SCHEMES:    chimera.order 0 "F0 F1 B1.0 R0.0 B0.0 R1.1 B1.1 R0.1 B0.1 F2 F3 B3.0 R2.0 B2.0 R3.1 B3.1 R2.1 B2.1"
// SCHEMES:    chimera.order 1 "F1 F0 B0.0 R1.0 B1.0 R0.1 B0.1 R1.1 B1.1 F3 F2 B2.0 R3.0 B3.0 R2.1 B2.1 R3.1 B3.1"
// SCHEMES:  chimera.pipeline @overlapped stages(2) micro_batches(2) updates(each_micro_batch) time_unit(slot) {
// SCHEMES:    chimera.direction 0 down on [0, 1] micro_batches [0, 1]
// SCHEMES:    chimera.order 0 "F0 | F1 B0 F2 B1 | F1 B0 B1"
// SCHEMES:    chimera.order 1 "| F0 B0 F1 B1 | F0 B0 F1 B1"
// SCHEMES:  chimera.pipeline @folded stages(4) micro_batches(2) workers(2) time_unit(slot) {
// SCHEMES:    chimera.direction 0 down on [0, 1, 1, 0] micro_batches [0, 1]
// SCHEMES:    chimera.order 0 "0F0 0F1 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 0I1 0W1"
// SCHEMES:    chimera.order 1 "1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1"

//--- breadth-first.mlir
chimera.pipeline @breadth_first stages(8) micro_batches(8) workers(4) {
  chimera.direction 0 down on [0, 1, 2, 3, 0, 1, 2, 3] micro_batches [0, 1, 2, 3, 4, 5, 6, 7]
  chimera.order 0 "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 4F0 4F1 4F2 4F3 4F4 4F5 4F6 4F7 4B0 4B1 4B2 4B3 4B4 4B5 4B6 4B7 0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7"
  chimera.order 1 "1F0 1F1 1F2 1F3 1F4 1F5 1F6 1F7 5F0 5F1 5F2 5F3 5F4 5F5 5F6 5F7 5B0 5B1 5B2 5B3 5B4 5B5 5B6 5B7 1B0 1B1 1B2 1B3 1B4 1B5 1B6 1B7"
  chimera.order 2 "2F0 2F1 2F2 2F3 2F4 2F5 2F6 2F7 6F0 6F1 6F2 6F3 6F4 6F5 6F6 6F7 6B0 6B1 6B2 6B3 6B4 6B5 6B6 6B7 2B0 2B1 2B2 2B3 2B4 2B5 2B6 2B7"
  chimera.order 3 "3F0 3F1 3F2 3F3 3F4 3F5 3F6 3F7 7F0 7F1 7F2 7F3 7F4 7F5 7F6 7F7 7B0 7B1 7B2 7B3 7B4 7B5 7B6 7B7 3B0 3B1 3B2 3B3 3B4 3B5 3B6 3B7"
}

//--- mixed.mlir
// Stage 1 has whole backwards. Stage 0 has split ones, except for micro-batch
// 1.
chimera.pipeline @mixed stages(2) micro_batches(3) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1, 2]
  chimera.order 0 "F0 F1 I0 F2 B1 I2 W0 W2"
  chimera.order 1 "F0 B0 F1 B1 F2 B2"
}

//--- recomputed.mlir
// The recompute R1 is earlier than chimera-recompute would put it.
chimera.pipeline @recomputed stages(2) micro_batches(2) recompute([0]) {
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 F1 R0 R1 B0 B1"
  chimera.order 1 "F0 B0 F1 B1"
}

//--- schemes.mlir
chimera.pipeline @slots stages(4) micro_batches(4) schedule("chimera")
chimera.pipeline @taken stages(2) micro_batches(2) schedule("chimera")
chimera.pipeline @ranges stages(2) micro_batches(8) schedule("chimera", {concatenation = doubling})
chimera.pipeline @parts stages(2) micro_batches(4) schedule("chimera", {concatenation = halving}) recompute(all)
chimera.pipeline @overlapped stages(2) micro_batches(2) schedule("pipedream")
chimera.pipeline @folded stages(4) micro_batches(2) schedule("zb-v") workers(2)
