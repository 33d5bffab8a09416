// Only the gradient of the tied matrix is summed over the first and last stage.
//
// RUN: chimera-opt %s --chimera-to-scheduled -o %t
// RUN: chimera-opt %t --chimera-verify-scheduled -o /dev/null

// RUN: sed 's/tied 1 width 1(\(%[0-9]*#0\), \(%[0-9]*#1\))/tied 1 width 1(\2, \1)/' %t | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=CONTRIBUTION
// CONTRIBUTION: expected contribution 0 to be the whole sum of pipeline 0, stage 0, of its tied parameters

// RUN: sed '/chimera.join pipeline 0 stage 0/s/#0, /#1, /' %t | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: expected the gradient of pipeline 0, stage 0

// RUN: sed '/chimera.join pipeline 0 stage 0/s/(%[0-9]*#0, \(%[0-9]*\)#1/(\1#0, \1#1/' %t | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=UNREDUCED
// UNREDUCED: expected an all-reduced gradient, got the gradient of one replica

// RUN: sed 's/ tied$//' %t | not chimera-opt --chimera-verify-scheduled 2>&1 | FileCheck %s --check-prefix=UNTIED
// UNTIED: expected the first and the last stage of a tied model, got stages 0 and 1
chimera.model @m gpt2 layers(2) heads(2) width(4) context(4) vocabulary(5) tied
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("1f1b")
    weight_type(f64)
