// The memory cap of a worker limits the sum of weights, a gradient sum,
// optimizer state, activations, and boundaries that are in use. A schedule that
// exceeds the cap can be made and examined. When it should become a program, it
// is refused, with one error per pipeline.
//
// RUN: chimera-opt %s --chimera-to-scheduled --split-input-file -o /dev/null
// RUN: chimera-opt %s --chimera-to-communicated --verify-diagnostics --split-input-file -o /dev/null

// GPipe holds eight micro-batches at once, which exceeds the cap.
// expected-error@below {{'chimera.pipeline' op expected workers of at most 400 bytes (memory_cap), got at least 814 bytes on worker 0 at backward of stage 0, micro-batch 0, and 1 other worker above the cap}}
chimera.pipeline @flood stages(2) micro_batches(8) schedule("gpipe") memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}
// Each pipeline that exceeds its cap is reported, not only the first one.
// expected-error@below {{got at least 414 bytes on worker 0 at}}
chimera.pipeline @flood_too stages(2) micro_batches(4) schedule("gpipe") memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 50, boundary = 10>
}

// -----

// 1F1B holds two micro-batches at once, which is below the cap.
chimera.pipeline @less stages(2) micro_batches(8) schedule("1f1b") memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}

// -----

// With recomputation, GPipe holds the activations of only one micro-batch.
chimera.pipeline @again stages(2) micro_batches(8) schedule("gpipe") recompute(all) memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}

// -----

// Stage 1 keeps inputs for its recomputes. They are a part of the sum.
// expected-error@below {{got at least 184 bytes on worker 1 at backward of stage 1, micro-batch 0}}
chimera.pipeline @still stages(2) micro_batches(8) schedule("gpipe") recompute(all) memory_cap(150) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}
