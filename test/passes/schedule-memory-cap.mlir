// A cap on what each worker may hold: weights, a gradient's sum, optimizer
// state, activations, and boundaries while they are in use. Such a schedule can
// be made and looked at, and is refused, with one line a pipeline, where it is to
// become a program.
//
// RUN: chimera-opt %s --chimera-to-scheduled --split-input-file -o /dev/null
// RUN: chimera-opt %s --chimera-to-communicated --verify-diagnostics --split-input-file -o /dev/null

// GPipe holds eight micro-batches at once, which is more,
// expected-error@below {{'chimera.pipeline' op expected workers of at most 400 bytes (memory_cap), got at least 814 bytes on worker 0 at backward of pipeline 0, stage 0, micro-batch 0, and 1 other worker above it}}
chimera.pipeline @flood stages(2) micro_batches(8) schedule("gpipe") memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}
// and so is each other one.
// expected-error@below {{got at least 414 bytes on worker 0 at}}
chimera.pipeline @flood_too stages(2) micro_batches(4) schedule("gpipe") memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 50, boundary = 10>
}

// -----

// 1F1B two,
chimera.pipeline @less stages(2) micro_batches(8) schedule("1f1b") memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}

// -----

// and GPipe one where it recomputes: what counts is what remains,
chimera.pipeline @again stages(2) micro_batches(8) schedule("gpipe") recompute(all) memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}

// -----

// though stage 1 keeps its inputs.
// expected-error@below {{got at least 184 bytes on worker 1 at backward of pipeline 0, stage 1, micro-batch 0}}
chimera.pipeline @still stages(2) micro_batches(8) schedule("gpipe") recompute(all) memory_cap(150) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}
