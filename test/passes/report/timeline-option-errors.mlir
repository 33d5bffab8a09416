// Wrong values of options are also reported as diagnostics.
//
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: chimera-print-timeline: expected forward above 0, or 0 for a default, got -1
// An output file must not be the input file.
// RUN: cp %s %t.mlir
// RUN: not chimera-opt %t.mlir --chimera-to-scheduled --chimera-print-timeline=output=%t.mlir 2>&1 | FileCheck %s --check-prefix=SELF
// RUN: not chimera-opt %t.mlir --chimera-to-scheduled --chimera-report=output=%t.mlir 2>&1 | FileCheck %s --check-prefix=SELF
// RUN: not chimera-opt --chimera-to-scheduled --chimera-report=output=%t.mlir < %t.mlir 2>&1 | FileCheck %s --check-prefix=SELF
// RUN: not chimera-opt --pass-pipeline "builtin.module(chimera-report{output=%t.mlir})" < %t.mlir 2>&1 | FileCheck %s --check-prefix=SELF
// RUN: chimera-opt %t.mlir --chimera-to-scheduled --mlir-print-debuginfo -o %t.from.mlir
// RUN: not chimera-opt %t.from.mlir --chimera-report=output=%t.from.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=SELF
// SELF: {{^}}chimera-opt: {{.*}}.mlir: expected another file than the input
// Both the report and the module may go to standard output.
// RUN: chimera-opt %t.mlir --chimera-to-scheduled --chimera-report=output=- -o - | FileCheck %s --check-prefix=OUT
// OUT-DAG: makespan
// OUT-DAG: chimera.pipeline
// RUN: cmp %s %t.mlir
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 p2p=-1" 2>&1 | FileCheck %s --check-prefix=LATENCY
// LATENCY: error: chimera-print-timeline: expected p2p of at least 0, got -1
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages receive-per-mib=-2" 2>&1 | FileCheck %s --check-prefix=RECEIVE
// RECEIVE: error: chimera-print-timeline: expected receive-per-mib of at least 0, got -2
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=send=4 2>&1 | FileCheck %s --check-prefix=SEND
// SEND: error: chimera-print-timeline: expected forward or costs=stages with send, got only send=4
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=backward=2 2>&1 | FileCheck %s --check-prefix=BACKWARD
// BACKWARD: error: chimera-print-timeline: expected forward with backward, got only backward=2
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=weight-gradient=2 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: error: chimera-print-timeline: expected forward with weight-gradient, got only weight-gradient=2
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=p2p=3 2>&1 | FileCheck %s --check-prefix=P2P
// P2P: error: chimera-print-timeline: expected forward or costs=stages with p2p, got only p2p=3
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=unit=ns 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: error: chimera-print-timeline: expected forward with unit, got only unit=ns
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2 weight-gradient=2" 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 weight-gradient=2" 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: error: chimera-print-timeline: expected weight-gradient below the whole backward, 2, got 2
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2 weight-gradient=2.5" 2>&1 | FileCheck %s --check-prefix=FRACTION
// FRACTION: error: chimera-print-timeline: expected weight-gradient below the whole backward, 2, got 2.5
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1.25 weight-gradient=3" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: chimera-print-timeline: expected weight-gradient below the whole backward, 2.5, got 3
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages backward=3" 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: chimera-print-timeline: expected no backward with costs=stages, got backward=3
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="costs=stages unit=ns" 2>&1 | FileCheck %s --check-prefix=STATED
// STATED: error: chimera-print-timeline: expected no unit with costs=stages, whose unit is the pipeline's time_unit, got unit=ns

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=width=-1 2>&1 | FileCheck %s --check-prefix=WIDTH
// The error comes before the pass reads a schedule.
// RUN: not chimera-opt %s --chimera-print-timeline=width=-1 2>&1 | FileCheck %s --check-prefix=WIDTH --implicit-check-not=expected
// WIDTH: error: chimera-print-timeline: expected width of at least 1, or 0 for the terminal's, got -1

// These words are not values of the options.
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=format=pdf 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: chimera-print-timeline: expected format to be one of text, svg, html, chrome-trace, got "pdf"
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=costs=guess 2>&1 | FileCheck %s --check-prefix=COSTS
// COSTS: error: chimera-print-timeline: expected costs to be one of uniform, worker, stages, got "guess"
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 unit=hours" 2>&1 | FileCheck %s --check-prefix=HOURS
// HOURS: error: chimera-print-timeline: expected unit to be one of none, slot, flop, s, ms, us, ns, got "hours"

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=9223372036854775807 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 p2p=9223372036854775807" 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: 'chimera.pipeline' op expected times that sum to less than 2^62 over the step

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=output=%t.missing/file 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: chimera-print-timeline: {{.*}}.missing/file: cannot create a file in its folder: No such file or directory
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=output=/dev/full 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: error: chimera-print-timeline: /dev/full: cannot write: No space left on device

// The name of a format has a typing error.
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=format=chrome_trace 2>&1 | FileCheck %s --check-prefix=NEAR
// NEAR: error: chimera-print-timeline: expected format to be one of text, svg, html, chrome-trace, got "chrome_trace": did you mean chrome-trace?

// Errors for an option that no pass has, and for a value that an option does
// not have.
// RUN: not chimera-opt %s --chimera-schedule=nosuch=1 2>&1 | FileCheck %s --check-prefix=NO-OPTIONS --implicit-check-not=Parser
// RUN: not chimera-opt %s --pass-pipeline="builtin.module(chimera-schedule{nosuch=1})" 2>&1 | FileCheck %s --check-prefix=NO-OPTIONS --implicit-check-not=Parser
// NO-OPTIONS: error: chimera-schedule: expected no options, got "nosuch"
// RUN: not chimera-opt %s --chimera-print-timeline=forwrd=1 2>&1 | FileCheck %s --check-prefix=OPTION --implicit-check-not=Parser
// OPTION: error: chimera-print-timeline: expected one of the options backward, copy, costs, format, forward, {{.*}}, got "forwrd": did you mean forward?
// RUN: not chimera-opt %s --chimera-communicate=message=buffered 2>&1 | FileCheck %s --check-prefix=MESSAGES --implicit-check-not=Parser
// MESSAGES: error: chimera-communicate: expected one of the options messages, got "message": did you mean messages?
// RUN: not chimera-opt %s --chimera-place-messages=message=buffered 2>&1 | FileCheck %s --check-prefix=PIPELINE --implicit-check-not=Parser
// PIPELINE: error: --chimera-place-messages: expected one of the options messages, got "message": did you mean messages?
// RUN: not chimera-opt %s --chimera-verify-program=nosuch 2>&1 | FileCheck %s --check-prefix=VERIFY --implicit-check-not=Parser
// VERIFY: error: chimera-verify-program: expected one of the options messages, got "nosuch"
// RUN: not chimera-opt %s --chimera-print-timeline=copy=abc 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: 'abc' value invalid
// VALUE: error: chimera-print-timeline: cannot take the options 'copy=abc'
// RUN: not chimera-opt %s --pass-pipeline="builtin.module(chimera.pipeline(chimera.worker(chimera-place-worker-messages{nosuch=1})))" 2>&1 | FileCheck %s --check-prefix=WORKER --implicit-check-not=Parser
// WORKER: error: chimera-place-worker-messages: expected one of the options messages, got "nosuch"

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=one 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: expected a number such as 2, 0.5 or 1e3, got 'one'
// RUN: echo 'module {}' | not chimera-opt --chimera-print-timeline 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: chimera-print-timeline: expected a chimera.pipeline, got none
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
