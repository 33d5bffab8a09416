// These sections differ from those that unroll makes for the schedule. The
// comment before each command says what the command changes.
//
// RUN: chimera-opt %s --chimera-to-unrolled -o %t
// RUN: chimera-opt %t --chimera-schedule -o /dev/null
chimera.pipeline @p stages(3) micro_batches(3) schedule("pipedream")

// A forward of the step is also in the prologue.
// RUN: sed '/prologue {/,/step {/{/forward .* stage 0 micro_batch 1/{p; s/micro_batch 1/micro_batch 2/; s/%%[a-z_0-9]*, %%[a-z_0-9]* =/%%y, %%z =/}}' %t | not chimera-opt --chimera-schedule 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: 'chimera.prologue' op expected no action of another step: run chimera-unroll first

// A forward of the epilogue is missing.
// RUN: sed '/epilogue {/,${/weights.*, .*state.* = chimera.optimizer_step .* stage 0 micro_batch 2/d; /new_sum[_0-9]* = chimera.backward .* stage 0 micro_batch 2/d; s/yield %%[a-z_0-9]*, %%[a-z_0-9]*/yield %%arg0, %%arg3/}' %t | not chimera-opt --chimera-schedule 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: 'chimera.epilogue' op expected every action of the step: run chimera-unroll first

// A backward adds to another backward's sum, although each has an update of its
// own.
// RUN: sed -E '/step \{/,/epilogue \{/{/backward .* stage 2 micro_batch 1/s/\) : (.*)\) ->/, %%new_sum) : \1, !chimera.weight_gradient<64>) ->/}' %t | not chimera-opt --chimera-schedule 2>&1 | FileCheck %s --check-prefix=SUM
// SUM: 'chimera.backward' op expected no sum to add to, as each micro-batch has an update of its own: run chimera-unroll first

// A copy or an update names a replica that does not exist.
// RUN: sed 's/copy pipeline 0 stage 1/copy pipeline 0 stage 3/' %t | not chimera-opt --chimera-schedule 2>&1 | FileCheck %s --check-prefix=COPY
// COPY: 'chimera.copy' op expected a pipeline below 1 and a stage below 3
// RUN: sed '/epilogue {/,${s/optimizer_step pipeline 0 stage 1 /optimizer_step pipeline 1 stage 1 /}' %t | not chimera-opt --chimera-schedule 2>&1 | FileCheck %s --check-prefix=UPDATE
// UPDATE: 'chimera.optimizer_step' op expected a pipeline below 1 and a stage below 3

// The step was unrolled with a flush and now has none, or the opposite.
// RUN: sed 's/"pipedream"/"1f1b"/' %s | chimera-opt --chimera-to-unrolled | sed 's/schedule("1f1b")/& updates(each_micro_batch)/; s/order 0 .*/order 0 "F0 F1 | F2 B0 F3 B1 F4 B2 | F2 B0 B1 B2"/; s/order 1 .*/order 1 "F0 | F1 B0 F2 B1 F3 B2 | F1 B0 F2 B1 B2"/; s/order 2 .*/order 2 "| F0 B0 F1 B1 F2 B2 | F0 B0 F1 B1 F2 B2"/' | not chimera-opt --chimera-schedule 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: 'chimera.step' op expected a prologue, a step and an epilogue, as updates(each_micro_batch) requires: run chimera-unroll first
// RUN: sed 's/updates(each_micro_batch)//; s/"[FB0-9 |]*"$/"F0 F1 F2 B0 B1 B2"/' %t | not chimera-opt --chimera-schedule 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: 'chimera.prologue' op expected a step alone, as updates(flush) requires: run chimera-unroll first
