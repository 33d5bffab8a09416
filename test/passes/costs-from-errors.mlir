// What is wrong with profiles and the machines that have them.
//
// RUN: split-file %s %t && cp %S/Inputs/profile-1.json %t
// RUN: not chimera-opt %t/machine.mlir --chimera-costs-from 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: chimera-costs-from: expected profiles=FILE,…
// RUN: not chimera-opt %t/alone.mlir --chimera-costs-from=profiles=%t/profile-1.json 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: error: chimera-costs-from: expected a chimera.machine, which has the profiles
// RUN: not chimera-opt %t/machine.mlir --chimera-costs-from=profiles=%t/none.json 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: error: chimera-costs-from: expected a profile in {{.*}}none.json, found no such file
// RUN: not chimera-opt %t/missing.mlir --chimera-partition 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: missing.mlir:1:1: error: 'chimera.machine' op expected a profile in {{.*}}none.json: No such file or directory
// RUN: not chimera-opt %t/text.mlir --chimera-partition 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: text.mlir:1:1: error: 'chimera.machine' op {{.*}}text.mlir: expected JSON, as chimera-run --profile writes it
// RUN: not chimera-opt %t/other.mlir --chimera-partition 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: other.mlir:3:1: error: 'chimera.pipeline' op {{.*}}profile-1.json: expected a profile of a model whose layers, with embedding and head, are 5, got 4
// RUN: not chimera-opt %t/neither.mlir 2>&1 | FileCheck %s --check-prefix=NEITHER
// NEITHER: error: 'chimera.machine' op expected speed(…) or profile(…), from which costs come
// RUN: chimera-opt %t/alone.mlir --chimera-to-scheduled -o %t/scheduled.mlir
// RUN: not chimera-compile %t/scheduled.mlir --costs-from %t/profile-1.json -o %t/p 2>&1 | FileCheck %s --check-prefix=PHASE
// PHASE: error: expected a description for --costs-from, got the phase: scheduled

//--- machine.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")

//--- alone.mlir
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b")

//--- missing.mlir
chimera.machine @here devices(4) memory(1 GiB) profile("none.json")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b")

//--- text.mlir
chimera.machine @here devices(4) memory(1 GiB) profile("text.mlir")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b")

//--- other.mlir
chimera.machine @here devices(4) memory(1 GiB) profile("profile-1.json")
chimera.model @m gpt2 layers(3) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b")

//--- neither.mlir
chimera.machine @here devices(4) memory(1 GiB)
