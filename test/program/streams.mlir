// Operations that take effect one after another on one communicator, as with
// NCCL.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-allocate -o %t.mlir
//
// Messages in the order that communicate makes are safe under every model.
// RUN: chimera-opt %t.mlir --chimera-verify-program=messages=rendezvous -o /dev/null
// RUN: chimera-opt %t.mlir --chimera-verify-program=messages=buffered -o /dev/null
// RUN: chimera-opt %t.mlir --chimera-verify-program=messages=stream-per-direction -o /dev/null
// RUN: chimera-opt %t.mlir --chimera-verify-program=messages=stream-per-pair -o /dev/null
//
// Both workers post their send first. With one communicator per direction the
// receives are posted in time. With one for both directions they wait for the
// sends.
// RUN: %python %S/Inputs/edit.py move 1 '%%0 = chimera.post_receive' '%%2 = chimera.post_send' , \
// RUN:   move 1 'chimera.wait %%2 ' '%%3 = chimera.load' < %t.mlir > %t.first.mlir
// RUN: chimera-opt %t.first.mlir --chimera-verify-program=messages=stream-per-direction -o /dev/null
// RUN: not chimera-opt %t.first.mlir --chimera-verify-program=messages=stream-per-pair -o /dev/null 2>&1 | FileCheck %s
// CHECK: {{:[0-9]+:12}}: error: expected no deadlock under the stream-per-pair model, got a cycle of 2:
// CHECK-NEXT: rank 0: worker 0 instruction 2 (post_send activation pipeline 0 stage 0 micro-batch 0 to worker 1) at
// CHECK-NEXT: waits until worker 1 instruction 3 (post_recv activation pipeline 0 stage 0 micro-batch 0 from worker 0) at {{.*}} takes effect, after instruction 2 on its communicator
// CHECK-NEXT: rank 1: worker 1 instruction 2 (post_send activation pipeline 1 stage 0 micro-batch 1 to worker 0) at
// CHECK-NEXT: waits until worker 0 instruction 3 (post_recv activation pipeline 1 stage 0 micro-batch 1 from worker 1) at {{.*}} takes effect, after instruction 2 on its communicator
// CHECK-NEXT: chimera.post_send
// CHECK-NOT: error
//
// All-reduces with the same members share a communicator, so the order of their
// starts matters.
// RUN: %python %S/Inputs/edit.py swap 1 '%%9 = chimera.all_reduce' '%%10 = chimera.all_reduce' < %t.mlir > %t.starts.mlir
// RUN: chimera-opt %t.starts.mlir --chimera-verify-program=messages=rendezvous -o /dev/null
// RUN: not chimera-opt %t.starts.mlir --chimera-verify-program=messages=stream-per-direction -o /dev/null 2>&1 | FileCheck %s --check-prefix=STARTS
// STARTS: error: expected no deadlock under the stream-per-direction model, got a cycle of 2:
// STARTS-NEXT: rank 0: worker 0 instruction 15 (all_reduce_start weight gradient stage 1 communicator 1) at
// STARTS-NEXT: waits until worker 1 instruction 16 (all_reduce_start weight gradient stage 1 communicator 1) at {{.*}} takes effect, after instruction 15 on its communicator
// STARTS-NEXT: rank 1: worker 1 instruction 15 (all_reduce_start weight gradient stage 0 communicator 2) at
// STARTS-NEXT: waits until worker 0 instruction 16 (all_reduce_start weight gradient stage 0 communicator 2) at {{.*}} takes effect, after instruction 15 on its communicator
//
// The all-reduces also deadlock if the first is awaited before the second is
// started.
// RUN: %python %S/Inputs/edit.py move 0 '%%11 = chimera.wait' '%%9 = chimera.all_reduce' , \
// RUN:   move 1 '%%12 = chimera.wait' '%%10 = chimera.all_reduce' , \
// RUN:   move 1 '%%9 = chimera.all_reduce' '%%12 = chimera.wait' < %t.mlir > %t.collectives.mlir
// RUN: not chimera-opt %t.collectives.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: expected no deadlock under the rendezvous model, got a cycle of 2:
// ALL-NEXT: rank 0: worker 0 instruction 16 (wait for all_reduce_start weight gradient stage 1 communicator 1) at
// ALL-NEXT: waits until worker 1 instruction 17 (all_reduce_start weight gradient stage 1 communicator 1) at {{.*}} is reached
// ALL-NEXT: rank 1: worker 1 instruction 16 (wait for all_reduce_start weight gradient stage 0 communicator 2) at
// ALL-NEXT: waits until worker 0 instruction 17 (all_reduce_start weight gradient stage 0 communicator 2) at {{.*}} is reached
chimera.pipeline @p stages(2) micro_batches(2) schedule("chimera")
