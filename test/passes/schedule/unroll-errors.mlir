// Hand-written pipelines that differ from those that partition makes.
//
// RUN: chimera-opt %s --chimera-unroll --verify-diagnostics --split-input-file -o /dev/null

// expected-error@below {{expected 1 stages: run chimera-partition first (--chimera-to-scheduled does), or give all}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected directions: run chimera-partition first (--chimera-to-scheduled does)}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}

// -----

// The pipeline is already unrolled.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  // expected-error@below {{expected a partitioned pipeline, which has stages, directions and orders only}}
  chimera.step { chimera.yield }
}

// -----

// The pipeline is already projected.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  // expected-error@below {{expected a partitioned pipeline, which has stages, directions and orders only}}
  chimera.worker 0 holds [] { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  // expected-error@below {{expected a placement of 1 stages, got 2}}
  chimera.direction 0 down on [0, 0] micro_batches [0]
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  // expected-error@below {{expected workers below 1, got 2147483647}}
  chimera.direction 0 down on [2147483647] micro_batches [0]
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  // expected-error@below {{expected an index below 1}}
  chimera.direction 2147483647 down on [0] micro_batches [0]
}

// -----

chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  // expected-note@below {{here first}}
  chimera.direction 0 down on [0] micro_batches [0]
  // expected-error@below {{expected an index that no other op has, got }}
  chimera.direction 0 down on [0] micro_batches [1]
}

// -----

// expected-error@below {{expected directions that share 3 micro-batches, got 2}}
chimera.pipeline @p stages(1) micro_batches(3) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0, 1]
  chimera.order 0 "F0 B0"
}

// -----

// expected-error@below {{expected pipeline 1 to have micro-batches, got none}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.direction 1 down on [0] micro_batches []
  chimera.order 0 "F0 B0"
}

// -----

// expected-error@below {{expected each micro-batch in one pipeline, got micro-batch 0 twice, again in pipeline 1}}
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.direction 1 down on [0] micro_batches [0]
  chimera.order 0 "F0 B0"
}

// -----

// One stage has all layers, so no other stage can share the embedding with it.
chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(8) tied
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") {
  chimera.stage 0 layers(0, 4) cost <forward = 1, backward = 2>
      bytes <weights = 2176, optimizer = 4352, stash = 1, boundary = 64>
  // expected-error@below {{expected some but not all layers of the tied model in the last of several stages}}
  chimera.stage 1 layers(0, 4) cost <forward = 1, backward = 2>
      bytes <weights = 2176, optimizer = 4352, stash = 1, boundary = 64>
  chimera.direction 0 down on [0, 1] micro_batches [0, 1]
  chimera.order 0 "F0 B0"
}

// -----

// Worker 0 has both stages. Each of its two updates would need the sum of the
// tied gradient in its own bytes.
chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(8) tied
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gems") {
  chimera.stage 0 layers(0, 3) cost <forward = 1, backward = 2>
      bytes <weights = 2144, optimizer = 4288, stash = 1, boundary = 64>
  chimera.stage 1 layers(3, 4) cost <forward = 1, backward = 2>
      bytes <weights = 160, optimizer = 320, stash = 1, boundary = 64>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  // expected-error@below {{expected stage 0 of a tied model once on worker 0, got it twice}}
  chimera.direction 1 down on [0, 1] micro_batches [1]
  chimera.order 0 "F0 B0"
}
