// Wrong projected workers.
//
// RUN: chimera-opt %s --chimera-to-scheduled | not chimera-opt --chimera-verify-projected 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'chimera.pipeline' op expected 2 workers, got 0: run chimera-project first
// RUN: chimera-opt %s --chimera-to-projected -o %t
// RUN: sed 's/worker 1 holds \[0, 1\]/worker 1 holds [0, 0]/' %t | not chimera-opt --chimera-verify-projected 2>&1 | FileCheck %s --check-prefix=HOLDS
// HOLDS: error: 'chimera.worker' op expected holds to list the stages that the directions place on it
// RUN: sed 's/worker 1 holds/worker 2 holds/' %t | not chimera-opt --chimera-verify-projected 2>&1 | FileCheck %s --check-prefix=INDEX
// INDEX: error: 'chimera.worker' op expected worker 1 here
// RUN: sed 's/forward pipeline 0 stage 0 micro_batch 1/& on 0/' %t | not chimera-opt --chimera-verify-projected 2>&1 | FileCheck %s --check-prefix=NAMED
// NAMED: error: 'chimera.forward' op expected no `on N` on an op inside a worker
// RUN: sed 's/post_receive from 0 pipeline 0 stage 0 micro_batch 1/post_receive from 0 pipeline 0 stage 0 micro_batch 0/' %t | not chimera-opt --chimera-verify-projected 2>&1 | FileCheck %s --check-prefix=LABEL
// LABEL: error: 'chimera.post_send' op expected the matching receive to have the same type and label
// LABEL: note: the matching receive on worker 1
// RUN: sed 's/backward pipeline 0 stage 0 micro_batch 1/backward pipeline 0 stage 0 micro_batch 0/' %t | not chimera-opt --chimera-verify-projected 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: 'chimera.pipeline' op expected a valid schedule: worker 0: backward of stage 0, micro-batch 0 is in the order twice
// RUN: sed 's/time_unit/updates(each_step) time_unit/' %t | not chimera-opt --chimera-verify-projected 2>&1 | FileCheck %s --check-prefix=SECTIONS
// SECTIONS: error: 'chimera.worker' op expected a prologue, a step and an epilogue, as updates(each_step) requires
// RUN: sed '/chimera.wait .* : !chimera.sending/d' %t | not chimera-opt --chimera-verify-projected 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: error: 'chimera.post_send' op expected its transfer to be waited for once, got 0 uses
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
