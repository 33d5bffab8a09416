// If gradients are clipped, all workers wait for the norm of all gradients
// before they update their weights, and before they begin the next step.
//
// RUN: chimera-show %s | FileCheck %s

chimera.training @t clip_norm(1.0)

// An all-reduce over two workers takes 2, and over four workers 4.
// CHECK: P0 {{.*}} A3 =  A0 =  N  =  =  =
// CHECK-NEXT: P1 {{.*}} A2 =  A1 =  N  =  =  =  =  =  =
// CHECK-NEXT: P2 {{.*}} A2 =  A1 =  N  =  =  =  =  =  =
// CHECK-NEXT: P3 {{.*}} A3 =  A0 =  N  =  =  =
// CHECK-NEXT: ; N: wait for the all-reduce of the norm)
// CHECK: step 31 = actions 23 + un-overlapped all-reduce 8 + updates 0
chimera.pipeline @p with @t stages(4) micro_batches(4) schedule("chimera") link <latency = 1>
