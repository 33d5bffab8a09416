// Errors in times with units.
//
// RUN: chimera-opt %s --split-input-file --verify-diagnostics

// expected-error@below {{expected units on all times or on none, got send = 5}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = 40 us, send = 5>

// -----

// A bandwidth always has a unit, so the latency must have one, too.
// expected-error@below {{expected units on all times or on none, got latency = 40}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = 40, bandwidth = "9 GB/s">

// -----

// expected-error@below {{expected time_unit(ns) or none with times that have units, got us}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") time_unit(us) link <latency = 40 us>

// -----

// expected-error@below {{expected time_unit(ns) or none with times that have units, got slot}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") time_unit(slot) {
  chimera.stage 0 cost <forward = 1 us, backward = 1 us> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected units on all times or on none, got backward = 1}}
  chimera.stage 0 cost <forward = 1 us, backward = 1> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected bytes, such as 4096 or 16 GiB, got 8 us}}
  chimera.stage 0 cost <forward = 1, backward = 1> bytes <weights = 8 us, optimizer = 0, stash = 8, boundary = 8>
}
