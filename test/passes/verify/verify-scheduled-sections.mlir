// Steps overlap. Each command changes a right step as its comment says: in the
// section that it names, or in all sections.
//
// RUN: sed 's/SCHEDULE/pipedream/' %s | chimera-opt --chimera-to-scheduled -o %t.each
// RUN: sed 's/SCHEDULE/pipedream-2bw/' %s | chimera-opt --chimera-to-scheduled -o %t.step
// RUN: chimera-opt %t.each --chimera-verify-scheduled -o /dev/null
// RUN: chimera-opt %t.step --chimera-verify-scheduled -o /dev/null
chimera.pipeline @p stages(3) micro_batches(3) schedule("SCHEDULE")

// A backward reads older weights than its forward.
// RUN: sed '/step {/,/epilogue {/{/backward .* stage 0 micro_batch 1 /s/%%arg1)/%%arg0)/}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=OLDER
// OLDER: 'chimera.backward' op expected it to read version 1 of the weights of stage 0, counted from the oldest argument

// With one update per step, a backward reads newer weights than its forward.
// RUN: sed '/epilogue {/,${/backward .* stage 0 micro_batch 1 /s/%%arg0,/%%arg1,/}' %t.step | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=NEWER
// NEWER: 'chimera.backward' op expected it to read version 0 of the weights of stage 0

// A forward reads older weights.
// RUN: sed '/forward .* stage 0 micro_batch 2 /s/%%arg2)/%%arg1)/' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD-COUNT-2: 'chimera.forward' op expected it to read version 2 of the weights of stage 0

// A backward uses the stash of another micro-batch.
// RUN: sed '/step {/,/epilogue {/{/backward .* stage 0 micro_batch 1 /s/%%arg5/%%arg4/}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=STASH
// STASH: 'chimera.backward' op expected the stash of micro-batch 1 on stage 0

// The two stashes in flight change places.
// RUN: sed -E '/step \{/,/epilogue \{/s/(yield (%%[a-z_0-9]+, ){4})(%%[a-z_0-9]+), (%%[a-z_0-9]+)/\1\4, \3/' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=EXCHANGED
// EXCHANGED: 'chimera.yield' op expected value 4 to be the stash in flight, oldest first, of stage 0
// EXCHANGED: 'chimera.yield' op expected value 5 to be the stash in flight, oldest first, of stage 0

// A used stash replaces the stash in flight.
// RUN: sed -E '/step \{/,/epilogue \{/s/(yield (%%[a-z_0-9]+, ){4})(%%[a-z_0-9]+)/\1%%arg4/' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=DROPPED
// DROPPED: 'chimera.yield' op expected value 4 to be the stash in flight, oldest first, of stage 0
// DROPPED-NOT: error:

// A section does not yield the new weights, optimizer state or activation.
// RUN: sed -E '/step \{/,/epilogue \{/s/yield %%[a-z_0-9]+/yield %%arg0/' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: 'chimera.yield' op expected value 0 to be one of the newest weights of stage 0
// RUN: sed -E '/step \{/,/epilogue \{/s/(yield (%%[a-z_0-9]+, ){3})%%[a-z_0-9]+/\1%%arg3/' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=STATE
// STATE: 'chimera.yield' op expected value 3 to be the optimizer state of stage 0
// RUN: sed -E '/step \{/,/epilogue \{/s/(yield (%%[a-z_0-9]+, ){10})%%[a-z_0-9]+/\1%%arg10/' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=SENT
// SENT: 'chimera.yield' op expected value 10 to be the activation that was sent last, for the next forward of stage 1

// A forward uses the input of another forward again.
// RUN: sed -E '/step \{/,/epilogue \{/{/forward .* stage 1 micro_batch 2 /s/on 1\(%%[a-z_0-9]+/on 1(%%arg10/}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=INPUT
// INPUT: 'chimera.forward' op expected the activation of micro-batch 2 from stage 0

// A forward uses labels that were loaded for another micro-batch.
// RUN: sed '/epilogue {/,${s/load pipeline 0 stage 2 micro_batch 1 /load pipeline 0 stage 2 micro_batch 2 /}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=LOAD
// LOAD: 'chimera.forward' op expected the labels of pipeline 0, stage 2, micro-batch 1, got the labels of pipeline 0, stage 2, micro-batch 2

// A backward uses the gradient or the loss of another micro-batch, or adds to
// the sum of another micro-batch, although each has its own update.
// RUN: sed -E '/step \{/,/epilogue \{/{/backward .* stage 1 micro_batch 1 /s/(on 1\(%%[a-z_0-9]+, )%%[a-z_0-9]+/\1%%input_gradient/}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=BACK --implicit-check-not=error:
// BACK: error: 'chimera.backward' op expected the input gradient of pipeline 0, stage 2, micro-batch 1, got the input gradient of pipeline 0, stage 2, micro-batch 0
// RUN: sed -E '/step \{/,/epilogue \{/{/backward .* stage 2 micro_batch 1 /s/\) : (.*)\) ->/, %%new_sum) : \1, !chimera.weight_gradient<64>) ->/}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=ADDED
// ADDED: error: 'chimera.backward' op expected no sum to add to, as each micro-batch has an update of its own

// The prologue yields the first version of weights in the wrong order.
// RUN: sed 's/yield %%0, %%1, %%arg0/yield %%0, %%arg0, %%1/' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=COPIES
// COPIES: 'chimera.prologue' op expected it to yield copies of the weights of stage 0, and these weights last

// An update uses weights that are not the newest, or an older optimizer state.
// RUN: sed -E '/step \{/,/epilogue \{/{/optimizer_step .* stage 0 micro_batch 1 /s/on 0\(%%[a-z_0-9]+/on 0(%%arg2/}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=UPDATE
// RUN: sed -E '/step \{/,/epilogue \{/{/optimizer_step .* stage 0 micro_batch 1 /s/, %%[a-z_0-9]+, /, %%arg3, /}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=UPDATE
// UPDATE: 'chimera.optimizer_step' op expected it to update the newest weights and the optimizer state of stage 0

// An update has the wrong micro-batch or none, or uses the gradient of another
// micro-batch.
// RUN: sed '/epilogue {/,${s/optimizer_step pipeline 0 stage 2 micro_batch 1 /optimizer_step pipeline 0 stage 2 micro_batch 2 /}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: 'chimera.optimizer_step' op expected the update of micro-batch 1 next
// RUN: sed '/epilogue {/,${s/optimizer_step pipeline 0 stage 2 micro_batch 1 /optimizer_step pipeline 0 stage 2 /}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: sed -E '/step \{/,/epilogue \{/{/optimizer_step .* stage 2 micro_batch 1 /s/, %%new_sum[a-z_0-9]+\)/, %%new_sum)/}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=GRADIENT
// GRADIENT: 'chimera.backward' op expected a use of its sum
// GRADIENT: 'chimera.optimizer_step' op expected the gradient of micro-batch 1
// RUN: sed '/epilogue {/,${s/optimizer_step pipeline 0 stage 1 /optimizer_step pipeline 0 stage 1 micro_batch 0 /}' %t.step | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=LABEL
// LABEL: 'chimera.optimizer_step' op expected no micro-batch, as it takes the gradient of all

// The only update of the step is missing. The step yields its old weights.
// RUN: sed -E '/step \{/,/epilogue \{/{/optimizer_step .* stage 0 /d; s/yield (%%[a-z_0-9]+, ){3}/yield %%arg0, %%arg1, %%arg2, /}' %t.step | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: 'chimera.backward' op expected a use of its sum
// MISSING: 'chimera.step' op expected 1 updates of stage 0, got 0

// RUN: sed 's/SCHEDULE")/pipedream") recompute(all)/; s/(3)/(4)/g' %s | chimera-opt --chimera-to-scheduled -o %t.again
// RUN: chimera-opt %t.again --chimera-verify-scheduled -o /dev/null

// A recompute reads another input or other weights than its forward.
// RUN: sed '/step {/,/epilogue {/{/recompute .* stage 1 micro_batch 1 /s/%%arg6)/%%arg5)/}' %t.again | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: error: 'chimera.recompute' op expected it to read version 1 of the weights of stage 1
// AGAIN-NOT: error:
// RUN: sed -E '/step \{/,/epilogue \{/{/recompute .* stage 1 micro_batch 1 /s/on 1\(%%[a-z_0-9]+/on 1(%%arg9/}' %t.again | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=READ
// READ: 'chimera.recompute' op expected the activation of micro-batch 1 from stage 0
// READ-NOT: error:
// RUN: sed '/epilogue {/,${s/load pipeline 0 stage 0 micro_batch 0 /load pipeline 0 stage 0 micro_batch 1 /}' %t.again | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=LOADED
// LOADED: 'chimera.recompute' op expected the tokens of pipeline 0, stage 0, micro-batch 0, got the tokens of pipeline 0, stage 0, micro-batch 1

// The two inputs in flight change places.
// RUN: sed -E '/step \{/,/epilogue \{/s/(yield (%%[a-z_0-9]+, ){9})(%%[a-z_0-9]+), (%%[a-z_0-9]+)/\1\4, \3/' %t.again | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=INPUTS
// INPUTS: 'chimera.yield' op expected value 9 to be the activation in flight, oldest first, of stage 1
// INPUTS: 'chimera.yield' op expected value 10 to be the activation in flight, oldest first, of stage 1

// The sections were made for another kind of update.
// RUN: sed 's/each_micro_batch/each_step/' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: 'chimera.prologue' op expected stage 0 to carry over 2 versions of its weights, 2 stashes and 0 activations
// RUN: sed 's/SCHEDULE/1f1b/' %s | chimera-opt --chimera-to-scheduled -o - | sed 's/schedule("1f1b")/& updates(each_micro_batch)/' | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: 'chimera.step' op expected a prologue and an epilogue around the step, as steps overlap: run chimera-unroll first
// RUN: sed -E '/(prologue|step|epilogue) \{/,/yield/{/\{/!{/yield/!d}; s/yield.*/yield/}' %t.each | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: 'chimera.prologue' op expected the loop-carried values of 3 replicas, got those of 0 as arguments and of 0 yielded
