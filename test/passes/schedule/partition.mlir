// RUN: chimera-opt %s --chimera-partition --split-input-file | FileCheck %s

// Bare stages: costs of one unit, 64 bytes per value, two directions of
// chimera.
// CHECK-LABEL: chimera.pipeline @bare stages(4)
// CHECK-SAME: time_unit(slot) {
// CHECK-NEXT: chimera.stage 0 cost <forward = 1, backward = 1, input_gradient = 1, weight_gradient = 1> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
// CHECK-NEXT: chimera.stage 1 cost
// CHECK-NEXT: chimera.stage 2 cost
// CHECK-NEXT: chimera.stage 3 cost
// CHECK-NEXT: chimera.direction 0 down on [0, 1, 2, 3] micro_batches [0, 1]
// CHECK-NEXT: chimera.direction 1 up on [3, 2, 1, 0] micro_batches [2, 3]
// CHECK-NEXT: chimera.order 0 "F0 . F1 F2 B2 F3 B3 B0 . B1"
// CHECK-NEXT: chimera.order 1 ". F0 F2 F1 F3 B2 B0 B3 B1"
// CHECK-NEXT: chimera.order 2 ". F2 F0 F3 F1 B0 B2 B1 B3"
// CHECK-NEXT: chimera.order 3 "F2 . F3 F0 B0 F1 B1 B2 . B3"
// CHECK-NEXT: }
chimera.pipeline @bare stages(4) micro_batches(4) schedule("chimera")

// -----

// CHECK-LABEL: chimera.pipeline @linear
// CHECK: chimera.direction 0 down on [0, 1, 2] micro_batches [0, 1, 2, 3, 4]
// CHECK-NEXT: chimera.order 0 "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4"
// CHECK-NEXT: chimera.order 1 "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4"
// CHECK-NEXT: chimera.order 2 "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4"
// CHECK-NEXT: }
chimera.pipeline @linear stages(3) micro_batches(5) schedule("1f1b")

// -----

// CHECK-LABEL: chimera.pipeline @gpipe
// CHECK: chimera.direction 0 down on [0] micro_batches [0, 1]
chimera.pipeline @gpipe stages(1) micro_batches(2) schedule("gpipe")

// -----

// A GPT-2's six layers by operations. With m = 2 * 16 tokens a micro-batch, the
// embedding has 32 * 64 = 2048 in the forward, each block 24 * 32 * 64^2 + 4 *
// 32 * 16 * 64 = 3276800, and the head 2 * 32 * 64 * 256 = 1048576. The best
// cut has a block and the head in one stage. The embedding hardly matters. The
// input gradient of a block has the attention's 4 * 32 * 16 * 64 twice, the
// weight gradient never.
//
// The sizes of weights in floats are (256 + 16) * 64 for the embedding, 12 *
// 64^2 + 13 * 64 for a block, and 2 * 64 + 256 * 64 for the head.
// CHECK-LABEL: chimera.pipeline @model
// CHECK-SAME: time_unit(flop) {
// CHECK-NEXT: chimera.stage 0 layers(0, 2) cost <forward = 3278848, backward = 6557696, input_gradient = 3409920, weight_gradient = 3147776> bytes <weights = 269568, optimizer = 539136, {{.*}}, boundary = 8192, weight_stash = 140544>
// CHECK-NEXT: chimera.stage 1 layers(2, 3) cost <forward = 3276800, backward = 6553600, input_gradient = 3407872, weight_gradient = 3145728> bytes <weights = 199936, optimizer = 399872, {{.*}}, boundary = 8192, weight_stash = 132096>
// CHECK-NEXT: chimera.stage 2 layers(3, 4) cost <forward = 3276800, backward = 6553600, input_gradient = 3407872, weight_gradient = 3145728>
// CHECK-NEXT: chimera.stage 3 layers(4, 6) cost <forward = 4325376, backward = 8650752, input_gradient = 4456448, weight_gradient = 4194304> bytes <weights = 265984
chimera.model @gpt gpt2 layers(4) heads(4) width(64) context(16) vocabulary(256)
chimera.pipeline @model of @gpt stages(4) micro_batches(4) schedule("chimera")
    micro_batch_size(2)

// -----

// With float64, all values have twice as many bytes.
// CHECK-LABEL: chimera.pipeline @wide
// CHECK-NEXT: chimera.stage 0 layers(0, 6) cost <forward = 14157824, {{.*}} bytes <weights = 1870848, optimizer = 3741696, {{.*}}, boundary = 16384, weight_stash = {{[0-9]+}}>
chimera.model @gpt gpt2 layers(4) heads(4) width(64) context(16) vocabulary(256)
chimera.pipeline @wide of @gpt stages(1) micro_batches(1) schedule("gpipe")
    micro_batch_size(2) weight_type(f64)

// -----

// If activations are in bfloat16, the weights include a copy of the parameters.
// The copy has neither a gradient nor optimizer state.
// CHECK-LABEL: chimera.pipeline @mixed
// CHECK-NEXT: chimera.stage 0 layers(0, 6) cost <forward = 14157824, {{.*}} bytes <weights = 1403136, optimizer = 1870848, {{.*}}, boundary = 4096, copy = 467712, weight_stash = {{[0-9]+}}>
chimera.model @gpt gpt2 layers(4) heads(4) width(64) context(16) vocabulary(256)
chimera.pipeline @mixed of @gpt stages(1) micro_batches(1) schedule("gpipe")
    micro_batch_size(2) activation_type(bf16)

// -----

// If the head costs more than all blocks, it is a stage of its own. If there
// are as many stages as layers, each stage has one layer.
// CHECK-LABEL: chimera.pipeline @head
// CHECK-NEXT: chimera.stage 0 layers(0, 3)
// CHECK-NEXT: chimera.stage 1 layers(3, 4)
// CHECK-LABEL: chimera.pipeline @single
// CHECK-NEXT: chimera.stage 0 layers(0, 1)
// CHECK-NEXT: chimera.stage 1 layers(1, 2)
// CHECK-NEXT: chimera.stage 2 layers(2, 3)
// CHECK-NEXT: chimera.stage 3 layers(3, 4)
chimera.model @gpt gpt2 layers(2) heads(1) width(8) context(8) vocabulary(5000)
chimera.pipeline @head of @gpt stages(2) micro_batches(2) schedule("gpipe")
chimera.pipeline @single of @gpt stages(4) micro_batches(2) schedule("gpipe")

// -----

// If stages are given, they and the unit of their costs are kept.
// CHECK-LABEL: chimera.pipeline @kept
// CHECK-SAME: schedule("chimera") time_unit(ns) {
// CHECK-NEXT: chimera.stage 1 layers(2, 6) cost <forward = 7, backward = 9> bytes <weights = 4, optimizer = 5, stash = 6, boundary = 7>
// CHECK-NEXT: chimera.stage 0 layers(0, 2) cost <forward = 3, backward = 4> bytes <weights = 1, optimizer = 2, stash = 3, boundary = 7>
// CHECK-NEXT: chimera.direction 0 down on [0, 1]
chimera.pipeline @kept stages(2) micro_batches(2) schedule("chimera") time_unit(ns) {
  chimera.stage 1 layers(2, 6) cost <forward = 7, backward = 9>
      bytes <weights = 4, optimizer = 5, stash = 6, boundary = 7>
  chimera.stage 0 layers(0, 2) cost <forward = 3, backward = 4>
      bytes <weights = 1, optimizer = 2, stash = 3, boundary = 7>
}

// -----

// With doubling, a forward has two micro-batches.
// CHECK-LABEL: chimera.pipeline @doubling
// CHECK: chimera.direction 0 down on [0, 1, 2, 3] micro_batches [{{.*}}] forwards [2, 2]{{$}}
// CHECK-NEXT: chimera.direction 1 up on [3, 2, 1, 0] micro_batches [{{.*}}] forwards [2, 2]{{$}}
chimera.pipeline @doubling stages(4) micro_batches(8)
    schedule("chimera", {concatenation = "doubling"})

// -----

// With halving, a backward has half a micro-batch, which takes a unit of time.
// CHECK-LABEL: chimera.pipeline @halving
// CHECK-NEXT: chimera.stage 0 cost <forward = 1, backward = 2, input_gradient = 2, weight_gradient = 2, recompute = 2>
// CHECK: chimera.direction 0 down on [0, 1, 2, 3] micro_batches [0, 2] backward_parts 2
// CHECK-NEXT: chimera.direction 1 up on [3, 2, 1, 0] micro_batches [1, 3] backward_parts 2
chimera.pipeline @halving stages(4) micro_batches(4)
    schedule("chimera", {concatenation = "halving"})

// SGD has no optimizer state.
// CHECK-LABEL: chimera.pipeline @plain_descent
// CHECK: chimera.stage 0 {{.*}} optimizer = 0,
chimera.training @training optimizer(sgd)
chimera.pipeline @plain_descent of @sgd with @training stages(2) micro_batches(2)
    schedule("gpipe")
chimera.model @sgd gpt2 layers(2) heads(2) width(8) context(16) vocabulary(256)

// -----

// Muon has one state for each of the 1,536 elements of the matrices of two blocks, and AdamW two
// states for each of the other 2,384 elements. Only updates by Muon have operations that count.
// CHECK-LABEL: chimera.pipeline @muon
// CHECK: chimera.stage 0 {{.*}} update = 286720> bytes <weights = 15680, optimizer = 25216,
chimera.training @training optimizer(muon) momentum(0.95)
chimera.pipeline @muon of @hidden with @training stages(2) micro_batches(2)
    schedule("gpipe")
chimera.model @hidden gpt2 layers(2) heads(2) width(8) context(16) vocabulary(256)
