// A pipeline has a scheduled step and also an order. Only chimera-recompute
// accepts it.
//
// RUN: chimera-opt %s --chimera-to-scheduled -o %t
// RUN: sed 's/    chimera.step {/    chimera.order 0 "F0 B0"\n    chimera.step {/' %t > %t.both
// RUN: not chimera-opt %t.both --chimera-verify-scheduled 2>&1 | FileCheck %s
// RUN: not chimera-opt %t.both --chimera-communicate 2>&1 | FileCheck %s
// CHECK: 'chimera.order' op expected no chimera.order beside a scheduled step: if the chimera.order has recomputes, run chimera-recompute, else delete it
// chimera-write-order writes the order of the step, and not the other one.
// RUN: chimera-opt %t.both --chimera-write-order | FileCheck %s --check-prefix=WRITTEN
// WRITTEN: chimera.order 0 "F0 F1 B0 B1"
//
// RUN: chimera-opt %s --chimera-to-projected | sed 's/    chimera.worker 0/    chimera.order 0 "F0 B0"\n    chimera.worker 0/' | not chimera-opt 2>&1 | FileCheck %s --check-prefix=WORKERS
// WORKERS: 'chimera.order' op expected no chimera.order after chimera-project: workers have the order
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe")
