// Allocated IR that has kept its source locations becomes the same program as
// chimera-compile writes, byte by byte.
//
// RUN: chimera-compile %s -o %t.chimera
// RUN: chimera-opt %s --chimera-to-allocated --mlir-print-debuginfo > %t.mlir
// RUN: chimera-translate --chimera-to-program %t.mlir -o %t.text
// RUN: cmp %t.chimera %t.text
// RUN: chimera-opt %s --chimera-to-allocated --emit-bytecode -o %t.mlirbc
// RUN: chimera-translate --chimera-to-program %t.mlirbc -o %t.bytecode
// RUN: cmp %t.chimera %t.bytecode
// RUN: chimera-translate --program-to-json %t.text | FileCheck %s

// The version of the file, the sizes of the stages and the placement.
// CHECK: "version": "9.0"
// CHECK: "stages": [
// CHECK: "first_layer": 0
// CHECK-NEXT: "layers": 2
// CHECK: "pipelines": [
// CHECK: "direction": "down"
// CHECK: "direction": "up"
// The gradients of stage 1 are added in this order: worker 1, then worker 0.
// CHECK: "message_model": "rendezvous"
// CHECK: "kind": "weight gradient"
// CHECK: "worker": 1
// CHECK-NEXT: "key": 0
// CHECK-NEXT: "stage": 1
// CHECK: "worker": 0
// CHECK-NEXT: "key": 1
// CHECK-NEXT: "stage": 1
// CHECK: "does": "load tokens pipeline 0 stage 0 micro-batch 0"
// CHECK-NEXT: "at": "{{.*}}chimera-translate.mlir:[[#]]:1"
chimera.model @gpt gpt2 layers(2) heads(2) width(8) context(4) vocabulary(16)
chimera.pipeline @p of @gpt stages(2) micro_batches(2) schedule("chimera")
