// With a memory cap, the best receive window that fits is chosen. Without a cap
// the window is 2, which needs one message of 64 bytes more than 1.
//
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s --check-prefix=TWO
// RUN: sed '/^chimera/s|$| memory_cap(1088)|' %s | chimera-opt --chimera-to-allocated | FileCheck %s --check-prefix=TWO
// TWO: chimera.worker 3 {{.*}} arena 1024 stashes
// Until its messages are placed, each worker states the window.
// RUN: chimera-opt %s --chimera-to-projected --chimera-choose-window -o %t.chosen
// RUN: FileCheck %s --check-prefix=CHOSEN < %t.chosen
// CHOSEN-COUNT-4: chimera.worker {{.*}} window 2 {
// RUN: chimera-opt %t.chosen --pass-pipeline='builtin.module(chimera.pipeline(chimera.worker(chimera-place-worker-messages)))' | FileCheck %s --check-prefix=PLACED --implicit-check-not="window 2"
// PLACED: chimera.worker 0
// RUN: sed '/^chimera/s|$| memory_cap(1087)|' %s | chimera-opt --chimera-to-allocated | FileCheck %s --check-prefix=ONE
// RUN: sed '/^chimera/s|$| memory_cap(1024)|' %s | chimera-opt --chimera-to-allocated | FileCheck %s --check-prefix=ONE
// ONE: chimera.worker 3 {{.*}} arena 960 stashes
// RUN: sed '/^chimera/s|$| memory_cap(1024)|' %s > %t.one.mlir
// RUN: chimera-compile %t.one.mlir -o %t.one

// If no window fits, the error states the memory that the smallest one needs.
// RUN: sed '/^chimera/s|$| memory_cap(1023)|' %s > %t.none.mlir
// RUN: not chimera-compile %t.none.mlir -o %t.none 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'chimera.pipeline' op expected workers of at most 1023 bytes (memory_cap), got 1024 on worker 3: an arena of 960 and stashes of 64

// If the description gives a window, no other one is chosen.
// RUN: sed '/^chimera/s|$| memory_cap(1064) receive_window(2)|' %s > %t.given.mlir
// RUN: not chimera-compile %t.given.mlir -o %t.given 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: error: 'chimera.pipeline' op expected workers of at most 1064 bytes (memory_cap), got 1088 on worker 3: an arena of 1024 and stashes of 64

// The report is made before workers are allocated, so it ignores the cap.
// RUN: sed '/^chimera/s|$| memory_cap(1064)|' %s | chimera-opt --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=REPORT
// REPORT: receive window {{ *}}2
// REPORT: note the compiler uses a smaller receive window if workers would exceed their caps

chimera.pipeline @p stages(4) micro_batches(6) schedule("1f1b") link <latency = 7>
