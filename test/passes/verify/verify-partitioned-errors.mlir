// Wrong partitioned pipelines.
//
// RUN: chimera-opt %s --chimera-to-partitioned -o %t
// RUN: not chimera-opt %s --chimera-verify-partitioned 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES: error: 'chimera.pipeline' op expected 2 stages: run chimera-partition first
// RUN: sed '/order 1/d' %t | not chimera-opt --chimera-verify-partitioned 2>&1 | FileCheck %s --check-prefix=ORDERS
// ORDERS: error: 'chimera.pipeline' op expected a chimera.order for each of 2 workers, got none for worker 1
// RUN: sed 's/F0 F1/F0 Q1/' %t | not chimera-opt --chimera-verify-partitioned 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: :25: error: 'chimera.order' op expected a word such as {{.*}}, got Q1
// RUN: sed 's/micro_batches \[0, 1\]/micro_batches [0]/' %t | not chimera-opt --chimera-verify-partitioned 2>&1 | FileCheck %s --check-prefix=SHARE
// SHARE: error: 'chimera.pipeline' op expected directions that share 2 micro-batches, got 1
// RUN: chimera-opt %s --chimera-to-unrolled | not chimera-opt --chimera-verify-partitioned 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: error: 'chimera.step' op expected a partitioned pipeline, which has stages, directions and orders only
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
