// Steps that overlap become one instruction stream with a body. If a value is
// not where the next section expects it, the stream exchanges buffers.
//
// RUN: chimera-opt %s --chimera-to-allocated --mlir-print-debuginfo -o %t.mlir
// RUN: chimera-translate --chimera-to-program %t.mlir -o %t.program
// RUN: chimera-translate --program-to-json %t.program | FileCheck %s
chimera.pipeline @p stages(2) micro_batches(2) schedule("pipedream-2bw")

// Before the first update, all versions of the weights are equal.
// CHECK: "updates": "each_step"
// CHECK: "does": "copy weights pipeline 0 stage 0"
// CHECK: "does": "forward pipeline 0 stage 0 micro-batch 0"
// CHECK: "weight_version": 0
// For its own micro-batches, the step reads the older version. For
// micro-batches of the next step, it reads the newer one.
// CHECK: "does": "forward pipeline 0 stage 0 micro-batch 1"
// CHECK: "weight_version": 1
// CHECK: "does": "backward pipeline 0 stage 0 micro-batch 0"
// CHECK: "weight_version": 1
// CHECK: "does": "forward pipeline 0 stage 0 micro-batch 2"
// CHECK: "weight_version": 0
// CHECK: "does": "backward pipeline 0 stage 0 micro-batch 1"
// CHECK: "weight_version": 1
// The new weights have replaced the older version. Both are loop-carried.
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

// A recompute has the weight version of its backward's step, and not that of
// its forward, which ran a step earlier.
// RUN: sed 's/-2bw")/") recompute(all)/' %s | chimera-compile - -o %t.again
// RUN: chimera-translate --program-to-json %t.again | FileCheck %s --check-prefix=AGAIN
// AGAIN: "does": "forward pipeline 0 stage 0 micro-batch 1"
// AGAIN: "does": "load tokens pipeline 0 stage 0 micro-batch 0"
// AGAIN: "does": "recompute pipeline 0 stage 0 micro-batch 0"
// AGAIN: "weight_version": 1
// AGAIN: "does": "backward pipeline 0 stage 0 micro-batch 0"
// AGAIN: "weight_version": 1

// Two loop-carried values in the same buffer cannot be exchanged.
// RUN: sed -E 's/(yield (%%[a-z_0-9]+), %%[a-z_0-9]+, (%%[a-z_0-9]+), %%)/yield \2, \2, \3, %%/' %t.mlir | not chimera-translate --chimera-to-program -o %t.none 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: 'chimera.yield' op expected each loop-carried value in a buffer of its own: run chimera-allocate first

// The worker has no buffers for the arguments of the step.
// RUN: sed 's/loop_carried \[[0-9, ]*\]//' %t.mlir | not chimera-translate --chimera-to-program -o %t.none 2>&1 | FileCheck %s --check-prefix=CARRIED
// CARRIED: 'chimera.worker' op expected an allocated worker: run chimera-allocate first
