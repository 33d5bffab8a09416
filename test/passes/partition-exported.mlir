// RUN: chimera-opt %s --chimera-partition | FileCheck %s

// The package has an embedding [5, 3], two layers of a parameter [3] each, and a
// head that is tied to the embedding, for 4 samples of 2 tokens and 2 labels in
// float32.

// A boundary has 4 * 2 * 3 floats. The head's stage holds its own copy of the
// matrix, and keeps log-probabilities of 5 classes.
// CHECK-LABEL: chimera.pipeline @two
// CHECK: chimera.stage 0 layers(0, 3) cost <forward = 72, backward = 117, input_gradient = 48, weight_gradient = 69>
// CHECK-SAME: bytes <weights = 84, optimizer = 168, stash = 256, boundary = 96>
// CHECK: chimera.stage 1 layers(3, 4)
// CHECK-SAME: bytes <weights = 60, optimizer = 120, stash = 324, boundary = 96>
chimera.model @m exported("Inputs/exported")
chimera.pipeline @two of @m stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(4)

// Parts for which there are graphs.
// CHECK-LABEL: chimera.pipeline @halves
// CHECK: chimera.direction 0 down {{.*}} backward_parts 2
chimera.pipeline @halves of @m stages(2) micro_batches(4)
    schedule("chimera", {concatenation = "halving"}) micro_batch_size(4)
