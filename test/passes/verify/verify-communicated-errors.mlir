// Wrong messages in a step whose all-reduces are not split yet.
// verify-synchronised-errors.mlir tests the checks of channels.
//
// RUN: chimera-opt %s --chimera-to-scheduled | not chimera-opt --chimera-verify-communicated 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: 'chimera.forward' op expected values of worker 1, got one of worker 0
// RUN: chimera-opt %s --chimera-to-communicated -o %t
// RUN: sed 's/forward pipeline 0 stage 0 micro_batch 1 on 0/forward pipeline 0 stage 0 micro_batch 1/' %t | not chimera-opt --chimera-verify-communicated 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: 'chimera.forward' op expected an op that names its worker
// RUN: sed '/chimera.wait %%2 on 0/d' %t | not chimera-opt --chimera-verify-communicated 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: error: 'chimera.post_send' op expected its transfer to be waited for once, got 0 uses
//
// The send comes after the wait for its message, so no run can reach the send.
// RUN: sed -e "/post_send %%input_gradient_8 to 0/{h;d}" -e "/wait %%13 on 0/G" %t | not chimera-opt --chimera-verify-communicated 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'chimera.post_send' op expected the send before the wait of its matching receive
// LATE: note: the matching receive on worker 0
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")
