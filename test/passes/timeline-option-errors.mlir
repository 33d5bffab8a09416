// Options that make no sense are diagnostics too.
//
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=-1 2>&1 | FileCheck %s
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 p2p=-1" 2>&1 | FileCheck %s
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=backward=2 2>&1 | FileCheck %s
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=p2p=1 2>&1 | FileCheck %s
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2 weight-gradient=2" 2>&1 | FileCheck %s
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 weight-gradient=2" 2>&1 | FileCheck %s
// CHECK: error: chimera-print-timeline: expected times of at least 0, a forward with any other, and a weight-gradient below backward

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=9223372036854775807 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 p2p=9223372036854775807" 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: 'chimera.pipeline' op expected times that sum to less than 2^62 over the step

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=output=%t.missing/file 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: chimera-print-timeline: cannot open output file '{{.*}}.missing/file': No such file or directory

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=one 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: 'one' value invalid
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
