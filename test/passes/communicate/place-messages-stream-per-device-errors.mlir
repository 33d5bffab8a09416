// RUN: not chimera-compile %s --messages=stream-per-device -o %t 2>&1 | FileCheck %s
// CHECK: :[[@LINE+1]]:1: error: 'chimera.pipeline' op expected no receive_window for stream-per-device messages, which both ends must post in one order
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b") receive_window(1)
