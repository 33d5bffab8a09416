// Errors in times with fractions.
//
// RUN: chimera-opt %s --chimera-to-scheduled --split-input-file --verify-diagnostics
// RUN: sed '1,/^\/\/ PROGRAM/d; /^\/\/ ---/,$d' %s | not chimera-compile - -o %t 2>&1 | FileCheck %s --check-prefix=COMPILED


// PROGRAM
// COMPILED: error: 'chimera.pipeline' op expected whole times, because a program has no fractions: multiply all times of the pipeline by 20
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1.25, backward = 0.2> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}

// -----

// expected-error@below {{expected no times with fractions if times are durations: give all times units, such as 0.5 ms, and leave out time_unit}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") time_unit(us) {
  chimera.stage 0 cost <forward = 1.5, backward = 1> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}

// -----

// expected-error@below {{expected units on all times or on none, got latency = 0.5}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = 0.5, send = 5 us>

// -----

// expected-error@below {{expected times with units beside a bandwidth, such as 0.5 us, got a fraction without a unit}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = 0.5, bandwidth = 900>

// -----

// expected-error@below {{expected times of fewer digits, and at most 10 of them after the point, got latency = 1.00000000001}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = 1.00000000001>

// -----

// expected-error@below {{expected times of fewer digits, and at most 10 of them after the point, got per_mib = 9000000000000000000}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <latency = 0.1, per_mib = 9000000000000000000>

// -----

// expected-error@below {{expected times of at least 0, got send -0.5}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") link <send = -0.5>

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected positive costs, got forward -0.5 and backward 1}}
  chimera.stage 0 cost <forward = -0.5, backward = 1> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // The halves of the backward need one more decimal place, for which the update
  // is too long.
  // expected-error@below {{expected times of fewer digits, and at most 10 of them after the point, got update = 9000000000}}
  chimera.stage 0 cost <forward = 1, backward = 0.123456789, update = 9000000000> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a time, such as 40 us, got  (units: ns, us, ms, s)}}
  chimera.stage 0 cost <forward = "", backward = 1> bytes <weights = 8, optimizer = 0, stash = 8, boundary = 8>
}

// -----

// A machine's times are nanoseconds.
// expected-error@below {{expected times of links in whole nanoseconds or with units, such as 0.5 us, got a fraction without a unit}}
chimera.machine @m devices(2) memory(16 GiB) speed("4 TFLOP/s") link <latency = 0.5>
