// Gradients in buckets: edits that are refused.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-allocate -o %t.mlir
// RUN: chimera-opt %t.mlir --chimera-verify-program=messages=stream-per-pair -o /dev/null
//
// One member reduces another bucket than the other.
// RUN: %python %S/Inputs/edit.py replace 1 'all_reduce_start stage 1 bucket 0' 'bucket 0 of 2' 'bucket 1 of 2' < %t.mlir > %t.label.mlir
// RUN: not chimera-opt %t.label.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=LABEL
// LABEL: error: {{.*}}expected start 0 of equal buckets and bytes, got worker 0 {{.*}} bucket 0 of 2 {{.*}} and worker 1 {{.*}} bucket 1 of 2
//
// Both reduce the same piece, but not the one that the label names.
// RUN: %python %S/Inputs/edit.py swap 0 'all_reduce_start stage 1 bucket 0' 'all_reduce_start stage 1 bucket 1' < %t.mlir > %t.order.mlir
// RUN: not chimera-opt %t.order.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: {{.*}}expected start 0 of equal buckets and bytes
// RUN: %python %S/Inputs/edit.py replace 0 'all_reduce_start stage 1 bucket 0' 'bucket 0 of 2' 'bucket 1 of 2' , replace 1 'all_reduce_start stage 1 bucket 0' 'bucket 0 of 2' 'bucket 1 of 2' < %t.mlir > %t.both.mlir
// RUN: not chimera-opt %t.both.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: {{.*}}expected the bucket of the gradient sum that its label names, got piece 0 of 2 of the gradient sum of pipeline 1 stage 1
//
// Pieces that are joined in another order have other positions than in the
// whole.
// RUN: %python %S/Inputs/edit.py replace 0 'chimera.join pipeline 1' '%%15, %%16' '%%16, %%15' < %t.mlir > %t.join.mlir
// RUN: not chimera-opt %t.join.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=JOIN
// JOIN: error: {{.*}}expected pieces that fill the weight gradient at bytes
//
// A bucket that is not reduced.
// RUN: %python %S/Inputs/edit.py drop 0 'wait %%11' , drop 0 'all_reduce_start stage 1 bucket 1' , drop 1 'wait %%11' , drop 1 'all_reduce_start stage 1 bucket 1' , replace 0 'chimera.join pipeline 1' '%%16' '%%9#1' , replace 1 'chimera.join pipeline 0' '%%16' '%%9#1' < %t.mlir > %t.left.mlir
// RUN: not chimera-opt %t.left.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=LEFT
// LEFT: error: {{.*}}expected piece 1 of 2 of the gradient sum of pipeline 1 stage 1, reduced like the others, got piece 1 of 2 of the gradient sum of pipeline 1 stage 1
//
// Both members cut at another place: between words, and inside one. The sums of
// integers that are cut inside a word are different.
// RUN: sed 's/bucket_bytes(32)/bucket_bytes(40)/' %s | chimera-opt --chimera-to-projected --chimera-allocate -o %t.40.mlir
// RUN: sed -e 's/<40>/<48>/g' -e 's/<24>/<16>/g' -e 's/ at 488$/ at 496/' -e 's/ at 552$/ at 560/' %t.40.mlir > %t.48.mlir
// RUN: chimera-opt %t.48.mlir --chimera-verify-program -o /dev/null
// RUN: sed -e 's/<40>/<44>/g' -e 's/<24>/<20>/g' -e 's/ at 488$/ at 492/' -e 's/ at 552$/ at 556/' %t.40.mlir > %t.44.mlir
// RUN: not chimera-opt %t.44.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: error: {{.*}}expected buckets that begin at multiples of 8 bytes, got byte 44
chimera.pipeline @p stages(2) micro_batches(2) schedule("chimera") bucket_bytes(32)
