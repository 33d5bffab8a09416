// Wrong unrolled steps.
//
// RUN: chimera-opt %s --chimera-to-partitioned | not chimera-opt --chimera-verify-unrolled 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: error: 'chimera.pipeline' op expected a step: run chimera-unroll first
// RUN: chimera-opt %s --chimera-to-scheduled | not chimera-opt --chimera-verify-unrolled 2>&1 | FileCheck %s --check-prefix=ORDERS
// ORDERS: error: 'chimera.pipeline' op expected a chimera.order for each worker: run chimera-partition first
//
// RUN: chimera-opt %s --chimera-to-unrolled -o %t
// RUN: sed 's/forward pipeline 0 stage 0 micro_batch 1/& on 0/' %t | not chimera-opt --chimera-verify-unrolled 2>&1 | FileCheck %s --check-prefix=PLACED
// PLACED: error: 'chimera.forward' op expected an action without a worker before chimera-schedule
// RUN: sed 's/forward pipeline 0 stage 0 micro_batch 1/forward pipeline 0 stage 0 micro_batch 0/' %t | not chimera-opt --chimera-verify-unrolled 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: 'chimera.forward' op expected the tokens of pipeline 0, stage 0, micro-batch 0, got the tokens of pipeline 0, stage 0, micro-batch 1
// TWICE: error: 'chimera.forward' op expected each action of the step exactly once
// RUN: sed 's/forward pipeline 0 stage 1 micro_batch 1/forward pipeline 0 stage 1 micro_batch 7/' %t | not chimera-opt --chimera-verify-unrolled 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'chimera.forward' op expected each action of the step exactly once
//
// If steps overlap and the order has recomputes, the unrolled step still has
// none.
// RUN: echo 'chimera.pipeline @q stages(2) micro_batches(2) schedule("pipedream-2bw") recompute(all fused)' | chimera-opt --chimera-to-scheduled --chimera-write-order | chimera-opt --chimera-to-unrolled -o /dev/null
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
