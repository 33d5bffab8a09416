// A refusal is shown at the op that is wrong.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-allocate -o %t.mlir
//
// More bytes than a cap, or than stated: at the op that reaches them.
// RUN: sed 's/schedule("chimera")/& memory_cap(700)/' %t.mlir > %t.cap.mlir
// RUN: not chimera-opt %t.cap.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=CAP
// CAP: {{:[0-9]+:29}}: error: worker 0 instruction 6 (forward pipeline 1 stage 1 micro-batch 1) at {{.*:29}}: expected at most 700 bytes, the worker's cap, got an arena of 896 and stashes of 128, and 1 other worker above the cap
// RUN: sed 's/peak 712 at 6/peak 704 at 6/' %t.mlir > %t.peak.mlir
// RUN: not chimera-opt %t.peak.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=PEAK
// PEAK: {{:[0-9]+:29}}: error: worker 0 instruction 6 (forward pipeline 1 stage 1 micro-batch 1) at {{.*:29}}: expected a peak of 704 bytes as stated, got 712 here
// RUN: sed 's/peak 712 at 6/peak 712 at 0/' %t.mlir > %t.at.mlir
// RUN: not chimera-opt %t.at.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=AT
// AT: {{:[0-9]+:12}}: error: worker 0 instruction 0 (load tokens pipeline 0 stage 0 micro-batch 0) at {{.*:12}}: expected the peak of 712 bytes here as stated, got
//
// The values that a step leaves for the next one.
// RUN: %python %S/Inputs/edit.py replace 0 'chimera.yield' '%%new_weights_3, %%new_state_4, %%new_weights, %%new_state' '%%new_weights, %%new_state, %%new_weights_3, %%new_state_4' < %t.mlir > %t.yield.mlir
// RUN: not chimera-opt %t.yield.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=YIELD
// YIELD: {{:[0-9]+:7}}: error: worker 0 state of pipeline 0 stage 0: expected the newest weights at the end, after 1 updates, got those of pipeline 1 stage 1 after 1
// YIELD-NEXT: chimera.yield
//
// Contributions in another order than that of the fold.
// RUN: sed '/chimera.loss/s/workers \[1, 0\] keys \[0, 1\]/workers [0, 1] keys [1, 0]/' %t.mlir > %t.keys.mlir
// RUN: not chimera-opt %t.keys.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=KEYS
// KEYS: {{:[0-9]+:12}}: error: communicator 0: expected ascending contributions, got micro-batch 0 after 1
// KEYS-NEXT: chimera.all_reduce_start
//
// A buffer that cannot exist.
// RUN: %python %S/Inputs/edit.py replace 0 '%%0 = chimera.load' 'buffers [4]' 'buffers [-1]' < %t.mlir > %t.buffer.mlir
// RUN: not chimera-opt %t.buffer.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=BUFFER
// BUFFER: {{:[0-9]+:12}}: error: 'chimera.load' op expected buffers from 0 on, got -1
chimera.pipeline @p stages(2) micro_batches(2) schedule("chimera")
