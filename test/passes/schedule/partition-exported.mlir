// RUN: chimera-opt %s --chimera-partition | FileCheck %s

// The package has embeddings [5, 3] and [2, 3], two layers of a parameter [3] each,
// and a head with a bias [5] that is tied to the first embedding. A sample has 2 tokens and
// 2 labels. The type is float32.

// A boundary has 4 * 2 * 3 floats. The stage of the head has its own copy of
// the tied matrix, and saves log-probabilities of 5 classes.
// CHECK-LABEL: chimera.pipeline @two
// CHECK: chimera.stage 0 layers(0, 3) cost <forward = 96, backward = 123, input_gradient = 48, weight_gradient = 75>
// CHECK-SAME: bytes <weights = 108, optimizer = 216, stash = 256, boundary = 96, weight_stash = 544>
// CHECK: chimera.stage 1 layers(3, 4)
// CHECK-SAME: bytes <weights = 80, optimizer = 160, stash = 324, boundary = 96, weight_stash = 256>
chimera.model @m exported("../Inputs/exported")
chimera.pipeline @two of @m stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(4)

// Half of the samples. Each half has a head of its own, which also saves a scalar.
// CHECK-LABEL: chimera.pipeline @halves
// CHECK: chimera.stage 1 layers(3, 4)
// CHECK-SAME: stash = 328, {{.*}} weight_stash = 256>
// CHECK: chimera.direction 0 down {{.*}} backward_parts 2
chimera.pipeline @halves of @m stages(2) micro_batches(4)
    schedule("chimera", {concatenation = "halving"}) micro_batch_size(4)

// Another number of samples.
// CHECK-LABEL: chimera.pipeline @three
// CHECK: chimera.stage 1 layers(3, 4)
// CHECK-SAME: stash = 244, boundary = 72, weight_stash = 192>
chimera.pipeline @three of @m stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(3)

// An embedding computes no input gradient, but both halves of its backward take
// time.
// CHECK-LABEL: chimera.pipeline @split_halves
// CHECK: chimera.stage 0 layers(0, 1) {{.*}} input_gradient = 2,
chimera.pipeline @split_halves of @m stages(4) micro_batches(8)
    schedule("chimera", {concatenation = "halving"}) micro_batch_size(4) split_backward
