// Steps overlap. Each command changes the output of synchronise in one place.
// The verifier follows values through messages and all-reduces.
//
// RUN: chimera-opt %s --chimera-to-synchronised -o %t
// RUN: chimera-opt %t --chimera-verify-synchronised -o /dev/null
chimera.pipeline @p stages(2) micro_batches(2) schedule("pipedream") data_parallel(2)

// The section yields an activation as it was made, and not as it was received.
// RUN: sed -E '/step \{/,/epilogue \{/s/(yield (%%[a-z_0-9]+, ){6})%%[a-z_0-9]+/\1%%output_7/' %t | not chimera-opt --chimera-verify-synchronised 2>&1 | FileCheck %s --check-prefix=UNSENT
// UNSENT: 'chimera.yield' op expected values of worker 1, got one of worker 0

// An action uses the weights of another worker's replica.
// RUN: sed -E '/epilogue \{/,${/forward .* stage 0 micro_batch 1 /s/%%arg1\)/%%arg4)/}' %t | not chimera-opt --chimera-verify-synchronised 2>&1 | FileCheck %s --check-prefix=TAKEN
// TAKEN: 'chimera.forward' op expected values of worker 0, got one of worker 1

// A backward reads another version than its forward.
// RUN: sed '/step {/,/epilogue {/{/backward .* stage 0 micro_batch 1 /s/%%arg1)/%%arg0)/}' %t | not chimera-opt --chimera-verify-synchronised 2>&1 | FileCheck %s --check-prefix=OLDER
// OLDER: 'chimera.backward' op expected it to read version 1 of the weights of stage 0

// The section yields the stash of a micro-batch whose backward has run.
// RUN: sed -E '/step \{/,/epilogue \{/s/(yield (%%[a-z_0-9]+, ){3})%%[a-z_0-9]+/\1%%arg3/' %t | not chimera-opt --chimera-verify-synchronised 2>&1 | FileCheck %s --check-prefix=DROPPED
// DROPPED: 'chimera.yield' op expected value 3 to be the stash in flight, oldest first, of stage 0

// A forward uses an activation that was received for another micro-batch.
// RUN: sed '/epilogue {/,${/post_[a-z]* .* stage 0 micro_batch 1 /s/micro_batch 1/micro_batch 0/}' %t | not chimera-opt --chimera-verify-synchronised 2>&1 | FileCheck %s --check-prefix=RECEIVED
// RECEIVED: 'chimera.forward' op expected the activation of micro-batch 1 from stage 0

// Two all-reduces change places, so an update uses another micro-batch's
// gradient.
// RUN: sed -E '/epilogue \{/,${/all_reduce_start stage 1 .*weight_gradient/s/\(%%new_sum[_0-9]*\)/(%%new_sum)/}' %t | not chimera-opt --chimera-verify-synchronised 2>&1 | FileCheck %s --check-prefix=REDUCED
// REDUCED: 'chimera.optimizer_step' op expected the gradient of micro-batch 1
