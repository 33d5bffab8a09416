// Steps that overlap become one stream with a body in it. If values are not
// where the next section expects them, they are exchanged at the section's end.
//
// RUN: chimera-opt %s --chimera-to-allocated --mlir-print-debuginfo -o %t.mlir
// RUN: chimera-translate --chimera-to-program %t.mlir -o %t.program
// RUN: chimera-translate --program-to-json %t.program | FileCheck %s
chimera.pipeline @p stages(2) micro_batches(2) schedule("pipedream-2bw")

// Before the first update every version is the newest.
// CHECK: "updates": "each_step"
// CHECK: "does": "copy weights pipeline 0 stage 0"
// CHECK: "does": "forward pipeline 0 stage 0 micro-batch 0"
// CHECK: "weight_version": 0
// The step reads the older version for its own micro-batches, and the newer one
// for those of the next step.
// CHECK: "does": "forward pipeline 0 stage 0 micro-batch 1"
// CHECK: "weight_version": 1
// CHECK: "does": "backward pipeline 0 stage 0 micro-batch 0"
// CHECK: "weight_version": 1
// CHECK: "does": "forward pipeline 0 stage 0 micro-batch 2"
// CHECK: "weight_version": 0
// CHECK: "does": "backward pipeline 0 stage 0 micro-batch 1"
// CHECK: "weight_version": 1
// The new weights have replaced the older ones. Both versions are carried over.
// CHECK: "does": "optimizer_step pipeline 0 stage 0 micro-batches 0 to 1"
// CHECK: "operands": [
// CHECK-NEXT: [[NEW:[0-9]+]],
// CHECK: "results": [
// CHECK-NEXT: [[OLD:[0-9]+]],
// CHECK: "does": "rename"
// CHECK: "operands": [
// CHECK-NEXT: [[NEW]],
// CHECK-NEXT: [[OLD]]
// CHECK: "results": [
// CHECK-NEXT: [[OLD]],
// CHECK-NEXT: [[NEW]]
// CHECK: "does": "load tokens pipeline 0 stage 0 micro-batch 1"
// CHECK: "body_begin": 5,
// CHECK-NEXT: "body_end": 21,

// With recomputes, the label is that of the backward, not of its forward a step
// ago.
// RUN: sed 's/-2bw")/") recompute(all)/' %s | chimera-compile - -o %t.again
// RUN: chimera-translate --program-to-json %t.again | FileCheck %s --check-prefix=AGAIN
// AGAIN: "does": "forward pipeline 0 stage 0 micro-batch 1"
// AGAIN: "does": "load tokens pipeline 0 stage 0 micro-batch 0"
// AGAIN: "does": "recompute pipeline 0 stage 0 micro-batch 0"
// AGAIN: "weight_version": 1
// AGAIN: "does": "backward pipeline 0 stage 0 micro-batch 0"
// AGAIN: "weight_version": 1

// Values in one buffer cannot be exchanged.
// RUN: sed -E 's/(yield (%%[a-z_0-9]+), %%[a-z_0-9]+, (%%[a-z_0-9]+), %%)/yield \2, \2, \3, %%/' %t.mlir | not chimera-translate --chimera-to-program -o %t.none 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: 'chimera.yield' op expected each loop-carried value in a buffer of its own: run chimera-allocate first

// Without the buffers of the step's arguments.
// RUN: sed 's/handed_on \[[0-9, ]*\]//' %t.mlir | not chimera-translate --chimera-to-program -o %t.none 2>&1 | FileCheck %s --check-prefix=CARRIED
// CARRIED: 'chimera.worker' op expected an allocated worker: run chimera-allocate first
