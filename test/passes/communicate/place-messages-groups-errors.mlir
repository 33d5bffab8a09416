// RUN: chimera-opt %s --chimera-to-projected --chimera-place-messages=messages=stream-per-pair --verify-diagnostics -o /dev/null
//
// RUN: not chimera-compile %s --messages=stream-per-pair -o %t 2>&1 | FileCheck %s
// CHECK: error: 'chimera.pipeline' op expected no receive_window

// expected-error@below {{expected no receive_window for stream-per-pair messages, which both ends must post in one order}}
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b") receive_window(1)
