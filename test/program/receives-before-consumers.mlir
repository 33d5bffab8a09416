// 1F1B with every receive moved to just before its consumer. Where activations
// and gradients cross, both neighbours then wait for their sends. A group makes
// the two one operation.
//
// RUN: chimera-opt %s --chimera-to-projected -o %t.mlir
// RUN: %python %S/Inputs/edit.py inline < %t.mlir > %t.inline.mlir
// RUN: not chimera-opt %t.inline.mlir --chimera-allocate --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s
// RUN: %python %S/Inputs/edit.py inline , group < %t.mlir > %t.group.mlir
// RUN: FileCheck %s --check-prefix=GROUP < %t.group.mlir
// RUN: chimera-opt %t.group.mlir --chimera-allocate --chimera-verify-program -o /dev/null
// RUN: chimera-opt %t.group.mlir --chimera-allocate --chimera-verify-program=messages=stream-per-pair -o /dev/null
//
// CHECK: error: expected no deadlock under the rendezvous model, got a cycle of 2:
// CHECK-NEXT: rank 2: worker 2 instruction 9 (wait for post_send activation pipeline 0 stage 2 micro-batch 1 to worker 3) at
// CHECK-NEXT: waits until worker 3 instruction 8 (post_recv activation pipeline 0 stage 2 micro-batch 1 from worker 2) at {{.*}} is reached
// CHECK-NEXT: rank 3: worker 3 instruction 6 (wait for post_send gradient pipeline 0 stage 3 micro-batch 0 to worker 2) at
// CHECK-NEXT: waits until worker 2 instruction 10 (post_recv gradient pipeline 0 stage 3 micro-batch 0 from worker 3) at {{.*}} is reached
//
// GROUP: chimera.worker 2
// GROUP: chimera.group {
// GROUP-NEXT: chimera.post_send {{.*}} to 3 pipeline 0 stage 2 micro_batch 1
// GROUP-NEXT: chimera.post_receive from 3 pipeline 0 stage 3 micro_batch 0
chimera.pipeline @p stages(4) micro_batches(4) schedule("1f1b")
