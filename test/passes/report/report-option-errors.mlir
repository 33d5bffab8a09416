// The report and the timeline have the same options for times.
// timeline-option-errors.mlir tests the other errors.
//
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-report=format=text 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: chimera-report: expected format to be one of table, comparison, csv, json, got "text"
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-report=p2p=3 2>&1 | FileCheck %s --check-prefix=P2P
// P2P: error: chimera-report: expected forward or costs=stages with p2p, got only p2p=3
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-report=unit=hours 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: error: chimera-report: expected unit to be one of none, slot, flop, s, ms, us, ns, got "hours"
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-report="costs=stages forward=1" 2>&1 | FileCheck %s --check-prefix=COSTS
// COSTS: error: chimera-report: expected no forward with costs=stages, got forward=1
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-report=forward=9223372036854775807 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: 'chimera.pipeline' op expected times that sum to less than 2^62 over the step
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-report=output=%t.missing/file 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: chimera-report: {{.*}}.missing/file: cannot create a file in its folder: No such file or directory

// If there is an error, an existing output file is unchanged.
// RUN: echo old > %t.kept
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-report="forward=9223372036854775807 output=%t.kept" 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: FileCheck %s --check-prefix=KEPT < %t.kept
// KEPT: old

// RUN: chimera-opt --help | FileCheck %s --check-prefix=HELP
// HELP: --chimera-report
// HELP: Form of the report: table (lines for people), comparison (a line for each pipeline, the fastest first), csv (a row for each pipeline), json (an object for each pipeline)
// RUN: echo 'module {}' | not chimera-opt --chimera-report 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: chimera-report: expected a chimera.pipeline, got none
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
