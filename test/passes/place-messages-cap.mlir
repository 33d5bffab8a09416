// Under a memory cap the chosen window is the best of those that fit: without
// one it is 8, and each less saves a message of 64 bytes.
//
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s --check-prefix=FREE
// FREE: chimera.worker 1 {{.*}} peak 1792
// FREE: chimera.worker 3
// FREE-COUNT-8: post_receive
// FREE-NEXT: chimera.load

// RUN: sed '/^chimera/s|$| memory_cap(1791)|' %s | chimera-opt --chimera-to-allocated | FileCheck %s --check-prefix=SEVEN
// SEVEN: chimera.worker 1 {{.*}} peak 1728

// RUN: sed '/^chimera/s|$| memory_cap(1407)|' %s | chimera-opt --chimera-to-allocated | FileCheck %s --check-prefix=ONE
// RUN: sed '/^chimera/s|$| memory_cap(1344)|' %s | chimera-opt --chimera-to-allocated | FileCheck %s --check-prefix=ONE
// ONE: chimera.worker 1 {{.*}} peak 1344
// RUN: sed '/^chimera/s|$| memory_cap(1344)|' %s > %t.one.mlir
// RUN: chimera-compile %t.one.mlir -o %t.one

// Of six messages with this latency two at a time fit, but are as slow as one.
// RUN: sed '/^chimera/s|.*|chimera.pipeline @p stages(4) micro_batches(6) schedule("gpipe") link <latency = 7> memory_cap(1152)|' %s | chimera-opt --chimera-to-allocated | FileCheck %s --check-prefix=SLOW
// SLOW: chimera.worker 1 {{.*}} peak 1088
// RUN: sed '/^chimera/s|.*|chimera.pipeline @p stages(4) micro_batches(6) schedule("gpipe") link <latency = 7> receive_window(2)|' %s | chimera-opt --chimera-to-allocated | FileCheck %s --check-prefix=TWO
// TWO: chimera.worker 1 {{.*}} peak 1152

// What is refused is the least that there is.
// RUN: sed '/^chimera/s|$| memory_cap(1343)|' %s > %t.none.mlir
// RUN: not chimera-compile %t.none.mlir -o %t.none 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: worker 0 instruction {{[0-9]+ .*}}: expected at most 1343 bytes, the worker's cap, got 1344

// A window that is given stays.
// RUN: sed '/^chimera/s|$| memory_cap(1400) receive_window(2)|' %s > %t.given.mlir
// RUN: not chimera-compile %t.given.mlir -o %t.given 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: worker 0 instruction {{[0-9]+ .*}}: expected at most 1400 bytes, the worker's cap, got 1408

// The report stands before all that.
// RUN: sed '/^chimera/s|$| memory_cap(1400)|' %s | chimera-opt --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=REPORT
// REPORT: receive window 8
// REPORT: note a program whose workers would hold more than their caps has a smaller receive window

chimera.pipeline @p stages(4) micro_batches(8) schedule("gpipe") link <latency = 30>
