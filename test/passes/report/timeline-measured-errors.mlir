// Tests traces of other pipelines, and options that do not fit a trace.
// test/compiler/schedule/timeline/MeasuredTest.cpp tests wrong traces.
//
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages copy=1" 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: chimera-print-timeline: expected measured with copy, got only copy=1
// RUN: sed 's/@p/@q/' %s > %t.q
// RUN: cat %s %t.q | not chimera-opt --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%S/../Inputs/measured.json" 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: chimera-print-timeline: expected one chimera.pipeline with measured, got 2
// RUN: cp %S/../Inputs/measured.json %t.json
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.json output=%t.json" 2>&1 | FileCheck %s --check-prefix=SELF
// SELF: {{^}}chimera-opt: {{.*}}.json: expected a file that no other option names
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.json" -o %t.json 2>&1 | FileCheck %s --check-prefix=DRIVER
// DRIVER: {{^}}chimera-opt: {{.*}}.json: expected a file that no other option names
// RUN: cmp %t.json %S/../Inputs/measured.json

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.missing" 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: chimera-print-timeline: {{.*}}.missing: cannot read: No such file or directory
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=/dev/zero" 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: error: chimera-print-timeline: /dev/zero: expected a file or a pipe, got a device
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%s" 2>&1 | FileCheck %s --check-prefix=JSON
// JSON: error: chimera-print-timeline: {{.*}}.mlir: expected JSON, got a parse error at line 1, column 1
// RUN: echo '{}' > %t.empty
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.empty" 2>&1 | FileCheck %s --check-prefix=TRACE
// TRACE: error: chimera-print-timeline: {{.*}}.empty: expected a trace, got no array traceEvents in a JSON object

// These times are no durations: slots, and costs without a unit.
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="measured=%t.json" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 measured=%t.json" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'chimera.pipeline' op expected a prediction in seconds for measured, got unit none: name a machine in the pipeline (on @here) and give costs=stages, or give costs=stages if the pipeline has stages with a duration as time_unit, or forward and unit
// RUN: sed 's/"1f1b"/"chimera"/' %s | not chimera-opt --chimera-to-scheduled --chimera-print-timeline="measured=%t.json" 2>&1 | FileCheck %s --check-prefix=SLOT
// SLOT: expected a prediction in seconds for measured, got unit slot: name a machine
// RUN: sed 's/time_unit(us)/time_unit(flop)/' %s | not chimera-opt --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.json" 2>&1 | FileCheck %s --check-prefix=FLOP
// FLOP: expected a prediction in seconds for measured, got unit flop: name a machine
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1e9 unit=s measured=%t.json" 2>&1 | FileCheck %s --check-prefix=LONG
// LONG: error: 'chimera.pipeline' op expected a step of less than 100 days to compare with measured, got a longer one
// RUN: sed 's/"1f1b"/"pipedream"/' %s | not chimera-opt --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.json" 2>&1 | FileCheck %s --check-prefix=FLUSH
// FLUSH: {{.*}}.json: expected micro-batches of 3 steps or more, as a run of 3 steps has with --trace-steps 2, got those of 1

// The trace of another pipeline.
// RUN: sed 's/"1f1b"/"gpipe"/' %s | not chimera-opt --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.json" 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: {{.*}}.json: expected forward of stage 1, micro-batch 1 before backward of stage 1, micro-batch 0 on P1, got another order
// RUN: sed 's/@p/@q/' %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.json" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: warning: expected the trace of @q, got one of @p
// RUN: sed 's/micro_batches(2)/micro_batches(3)/' %s | not chimera-opt --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.json" 2>&1 | FileCheck %s --check-prefix=FEWER
// FEWER: {{.*}}.json: expected forward of stage 0, micro-batch 2 on P0, got none
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages measured=%t.json copy=1" 2>&1 | FileCheck %s --check-prefix=COPY
// COPY: {{.*}}.json: expected copy 0, got 1
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b") time_unit(us) {
  chimera.stage 0 cost <forward = 1000, backward = 2000, update = 100>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1000, backward = 2000, update = 100>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}
