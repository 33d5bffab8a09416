// A cap on what each worker may hold: weights, a gradient's sum, optimizer
// state, activations, and boundaries while they are in use.
//
// RUN: chimera-opt %s --chimera-to-scheduled --verify-diagnostics --split-input-file -o /dev/null

// GPipe holds eight micro-batches at once, which is more,
// expected-error@below {{schedule "gpipe": worker 0 holds 814 bytes at forward of pipeline 0, stage 0, micro-batch 7, more than its cap of 400}}
// expected-error@below {{schedule "gpipe": worker 1 holds 814 bytes at}}
chimera.pipeline @flood stages(2) micro_batches(8) schedule("gpipe") memory_cap(400) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
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
// expected-error@below {{recompute: worker 1 holds 184 bytes at recompute of pipeline 0, stage 1, micro-batch 0, more than its cap of 150}}
chimera.pipeline @still stages(2) micro_batches(8) schedule("gpipe") recompute(all) memory_cap(150) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 2, stash = 100, boundary = 10>
}
