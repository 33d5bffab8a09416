// Wrong operands of each op. Each line of a sed command changes one operand of
// a right step. Each wrong operand must be reported at its op.
//
// The values have the right type, but another pipeline, stage or micro-batch.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(4) schedule("chimera")' | chimera-opt --chimera-to-scheduled -o %t
// RUN: sed -e '/forward pipeline 0 stage 1 micro_batch 0 /s/(%%output,/(%%output_0,/' \
// RUN:     -e '/forward pipeline 0 stage 0 micro_batch 2 /s/(%%4,/(%%0,/' \
// RUN:     -e '/forward pipeline 1 stage 1 micro_batch 3 /s/%%6)/%%2)/' \
// RUN:     -e '/backward pipeline 1 stage 1 micro_batch 3 /s/%%arg6,/%%arg2,/' \
// RUN:     -e '/backward pipeline 0 stage 1 micro_batch 2 /s/%%output_16,/%%output_4,/' \
// RUN:     -e '/backward pipeline 0 stage 0 micro_batch 2 /s/(%%stash_11,/(%%stash,/' \
// RUN:     -e '/backward pipeline 1 stage 0 micro_batch 3 /s/%%input_gradient_19,/%%input_gradient,/' \
// RUN:     -e '/all_reduce .*(%%output_4,/s/%%output_4, %%output_2,/%%output_2, %%output_4,/' \
// RUN:     -e '/optimizer_step pipeline 0 stage 1 /s/(%%arg2,/(%%arg6,/' \
// RUN:     -e '/optimizer_step pipeline 1 stage 1 /s/%%arg7,/%%arg3,/' \
// RUN:     -e 's/yield %%new_weights_26,/yield %%arg0,/' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --implicit-check-not=error:
// CHECK: error: 'chimera.forward' op expected the activation of pipeline 0, stage 0, micro-batch 0, got the activation of pipeline 1, stage 0, micro-batch 1
// CHECK: error: 'chimera.forward' op expected the tokens of pipeline 0, stage 0, micro-batch 2, got the tokens of pipeline 0, stage 0, micro-batch 0
// CHECK: error: 'chimera.forward' op expected the labels of pipeline 1, stage 1, micro-batch 3, got the labels of pipeline 1, stage 1, micro-batch 1
// CHECK: error: 'chimera.backward' op expected the weights of pipeline 1, stage 1 that the step takes, got the weights of pipeline 0, stage 1 that the step takes
// CHECK: error: 'chimera.backward' op expected the loss of pipeline 0, stage 1, micro-batch 2, got the loss of pipeline 0, stage 1, micro-batch 0
// CHECK: error: 'chimera.backward' op expected the stash of pipeline 0, stage 0, micro-batch 2, got the stash of pipeline 0, stage 0, micro-batch 0
// CHECK: error: 'chimera.backward' op expected the input gradient of pipeline 1, stage 1, micro-batch 3, got the input gradient of pipeline 1, stage 1, micro-batch 1
// CHECK: error: 'chimera.all_reduce' op expected the loss of pipeline 0, stage 1, micro-batch 0, got the loss of pipeline 1, stage 1, micro-batch 1
// CHECK: error: 'chimera.all_reduce' op expected the loss of pipeline 1, stage 1, micro-batch 1, got the loss of pipeline 0, stage 1, micro-batch 0
// CHECK: error: 'chimera.optimizer_step' op expected the weights of pipeline 0, stage 1 that the step takes, got the weights of pipeline 1, stage 1 that the step takes
// CHECK: error: 'chimera.optimizer_step' op expected the optimizer state of pipeline 1, stage 1 that the step takes, got the optimizer state of pipeline 0, stage 1 that the step takes
// CHECK: error: 'chimera.yield' op expected the updated weights of pipeline 0, stage 0, got the weights of pipeline 0, stage 0 that the step takes

// The all-reduce lacks a loss.
// RUN: sed -e '/all_reduce .*(%%output_4,/{s/, %%output_14//; s/, !chimera.loss<[0-9]*>//}' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=FEW --implicit-check-not=error:
// FEW: error: 'chimera.all_reduce' op expected the losses of 4 micro-batches, got 3

// Wrong operands of the two halves of a backward. If another stage's gradient
// is added to a sum, no update uses the sum.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b") split_backward' | chimera-opt --chimera-to-scheduled -o %t
// RUN: sed -e '/input_gradient pipeline 0 stage 1 micro_batch 1 /s/(%%stash_6,/(%%stash_3,/' \
// RUN:     -e '/weight_gradient pipeline 0 stage 1 micro_batch 1 /{s/%%3)/%%4)/}' \
// RUN:     -e '/weight_gradient pipeline 0 stage 0 micro_batch 1 /s/(%%weight_stash_9,/(%%weight_stash_4,/' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=HALVES --implicit-check-not=error:
// HALVES: error: 'chimera.input_gradient' op expected the stash of pipeline 0, stage 1, micro-batch 1, got the stash of pipeline 0, stage 1, micro-batch 0
// HALVES: error: 'chimera.weight_gradient' op expected the sum so far of pipeline 0, stage 1, got the sum so far of pipeline 0, stage 0
// HALVES: error: 'chimera.weight_gradient' op expected the weight stash of pipeline 0, stage 0, micro-batch 1, got the weight stash of pipeline 0, stage 0, micro-batch 0
// HALVES: error: 'chimera.weight_gradient' op expected a sum of its own to add to
// HALVES: note: the other one is here
// HALVES: error: 'chimera.weight_gradient' op expected a use of its sum

// Wrong operands with forwards of two micro-batches, and with recomputes.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(4) schedule("chimera", {concatenation = "doubling"}) recompute([0])' | chimera-opt --chimera-to-scheduled -o %t
// RUN: sed -e '/forward pipeline 1 stage 1 micro_batch 2 /s/(%%output_0,/(%%output,/' \
// RUN:     -e '/backward pipeline 1 stage 1 micro_batch 3 /s/(%%stash#1, %%output_1#1,/(%%stash#0, %%output_1#0,/' \
// RUN:     -e '/recompute pipeline 0 stage 0 micro_batch 1 /s/(%%0,/(%%1,/' \
// RUN:     -e '/recompute pipeline 1 stage 0 micro_batch 3 /s/%%arg4)/%%arg0)/' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=AGAIN --implicit-check-not=error:
// AGAIN: error: 'chimera.forward' op expected the activation of pipeline 1, stage 0, micro-batches 2 to 3, got the activation of pipeline 0, stage 0, micro-batches 0 to 1
// AGAIN: error: 'chimera.backward' op expected the stash of pipeline 1, stage 1, micro-batch 3, got the stash of pipeline 1, stage 1, micro-batch 2
// AGAIN: error: 'chimera.backward' op expected the loss of pipeline 1, stage 1, micro-batch 3, got the loss of pipeline 1, stage 1, micro-batch 2
// AGAIN: error: 'chimera.recompute' op expected the tokens of pipeline 0, stage 0, micro-batch 1, got the tokens of pipeline 1, stage 0, micro-batches 2 to 3
// AGAIN: error: 'chimera.recompute' op expected the weights of pipeline 1, stage 0 that the step takes, got the weights of pipeline 0, stage 0 that the step takes

// A forward has stashes for only some of its micro-batches.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(4) schedule("chimera", {concatenation = "doubling"}) recompute(all)' | chimera-opt --chimera-to-scheduled -o %t
// RUN: FileCheck %s --check-prefix=KEPT --input-file %t
// KEPT: %output_1:2, %stash = chimera.forward pipeline 1 stage 1 micro_batch 2 count 2
// RUN: sed -e '/recompute pipeline 1 stage 1 micro_batch 3 /s/micro_batch 3/micro_batch 2/' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=SHIFTED
// SHIFTED: error: 'chimera.backward' op expected the stash of pipeline 1, stage 1, micro-batch 2, got the stash of pipeline 1, stage 1, micro-batch 3
// SHIFTED: error: 'chimera.backward' op expected the stash of pipeline 1, stage 1, micro-batch 3, got the stash of pipeline 1, stage 1, micro-batch 2

// Wrong operands of parts of a backward.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(2) schedule("chimera", {concatenation = "halving"})' | chimera-opt --chimera-to-scheduled -o %t
// RUN: sed -e '/backward pipeline 0 stage 0 micro_batch 0 part 1 /s/(%%stash#1, %%input_gradient_13,/(%%stash#0, %%input_gradient_7,/' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=PART --implicit-check-not=error:
// PART: error: 'chimera.backward' op expected the stash of pipeline 0, stage 0, micro-batch 0, part 1 of 2, got the stash of pipeline 0, stage 0, micro-batch 0, part 0 of 2
// PART: error: 'chimera.backward' op expected the input gradient of pipeline 0, stage 1, micro-batch 0, part 1 of 2, got the input gradient of pipeline 0, stage 1, micro-batch 0, part 0 of 2

// At most twenty wrong operands are listed.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(24) schedule("gpipe")' | chimera-opt --chimera-to-scheduled \
// RUN:   | sed '/chimera.load/s/pipeline 0/pipeline 1/' \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=MANY --implicit-check-not=error:
// MANY-COUNT-20: error: 'chimera.forward' op expected the
// MANY: error: 'chimera.step' op and 28 more

// Some ops occur twice, and others are missing.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe")' | chimera-opt --chimera-to-scheduled -o %t
// RUN: sed -e '/all_reduce .*loss/d' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=LOST --implicit-check-not=error:
// LOST: error: 'chimera.step' op expected an all-reduce of the losses, got none
// RUN: sed -e '/all_reduce .*loss/{p; s/%%4 =/%%again =/}' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=TWICE --implicit-check-not=error:
// TWICE: error: 'chimera.all_reduce' op expected one all-reduce of the losses
// TWICE: note: the other one is here
// RUN: sed -e '/optimizer_step pipeline 0 stage 1 /{p; s/%%new_weights, %%new_state =/%%w, %%s =/}' %t \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=UPDATES --implicit-check-not=error:
// UPDATES: error: 'chimera.optimizer_step' op expected one update of its stage
// UPDATES: note: the other one is here
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(3) schedule("gpipe")' | chimera-opt --chimera-to-scheduled \
// RUN:   | sed -e '/backward pipeline 0 stage 1 micro_batch 2 /s/%%new_sum_[0-9]*)/%%new_sum)/' \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=SHARED --implicit-check-not=error:
// SHARED: error: 'chimera.backward' op expected a sum of its own to add to
// SHARED: note: the other one is here
// SHARED: error: 'chimera.backward' op expected a use of its sum

// If a pass made an op, the error names its purpose, also with printed
// locations.
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe")' | chimera-opt --chimera-to-scheduled --mlir-print-debuginfo \
// RUN:   | sed -e '/forward pipeline 0 stage 0 micro_batch 1 /s/(%%1,/(%%0,/' \
// RUN:   | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=MADE
// MADE: error: 'chimera.forward' op expected the tokens of
// MADE: note: made for pipeline 0 stage 0 micro_batch 1

// In every section that ends a step, losses must be summed over all copies.
// RUN: echo 'chimera.pipeline @p stages(3) micro_batches(3) schedule("pipedream")' | chimera-opt --chimera-to-scheduled -o %t
// RUN: sed '/chimera.epilogue/,${/all_reduce stage 2/d}' %t | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=EPILOGUE
// EPILOGUE: error: 'chimera.epilogue' op expected an all-reduce of the losses, got none
// RUN: sed 's/all_reduce stage 2/all_reduce stage 1/' %t | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=LAST
// LAST: error: 'chimera.all_reduce' op expected the losses of stage 2, the last, got those of stage 1
// RUN: sed 's/copy pipeline 0 stage 0/copy pipeline 0 stage 1/' %t | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=COPIES
// COPIES: error: 'chimera.prologue' op expected it to yield copies of the weights of stage 0, and these weights last
// RUN: echo 'chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe")' | chimera-opt --chimera-to-scheduled -o %t
// RUN: tac %t | sed -e '/all_reduce/{h;d}' -e '/backward pipeline 0 stage 0 micro_batch 1/G' | tac | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=BEHIND
// BEHIND: error: 'chimera.all_reduce' op expected all-reduces after all actions of the step
