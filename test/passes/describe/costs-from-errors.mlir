// Errors in profiles, and in machines that refer to profiles.
//
// RUN: rm -rf %t && split-file %s %t && cp %S/../Inputs/profile-1.json %t
// RUN: not chimera-opt %t/machine.mlir --chimera-costs-from 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: chimera-costs-from: expected profiles=FILE,…
// RUN: not chimera-opt %t/alone.mlir --chimera-costs-from=profiles=%t/profile-1.json 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: error: chimera-costs-from: expected a chimera.machine, got none: declare one, such as chimera.machine @here devices(4) memory(16 GiB) speed("50 TFLOP/s"), and name it in the pipeline, after its model and training: of @MODEL with @TRAINING on @here
// RUN: not chimera-opt %t/machine.mlir --chimera-costs-from=profiles=%t/none.json 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: error: chimera-costs-from: expected a profile in {{.*}}none.json, found no such file
// RUN: not chimera-opt %t/missing.mlir --chimera-partition 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: missing.mlir:1:1: error: 'chimera.machine' op expected a profile in {{.*}}none.json: No such file or directory
// RUN: not chimera-opt %t/text.mlir --chimera-partition 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: text.mlir:1:1: error: 'chimera.machine' op {{.*}}text.mlir: expected JSON, as chimera-run --profile writes it
// RUN: not chimera-opt %t/other.mlir --chimera-partition 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: other.mlir:3:1: error: 'chimera.pipeline' op {{.*}}profile-1.json: expected a profile of a model with 5 layers (with embedding and head), got 4
// RUN: not chimera-opt %t/neither.mlir 2>&1 | FileCheck %s --check-prefix=NEITHER
// NEITHER: error: 'chimera.machine' op expected speed(…) or profile(…) for the costs of layers
// RUN: chimera-opt %t/alone.mlir --chimera-to-scheduled -o %t/scheduled.mlir
// RUN: not chimera-compile %t/scheduled.mlir --costs-from %t/profile-1.json -o %t/p 2>&1 | FileCheck %s --check-prefix=PHASE
// PHASE: error: expected a description for --costs-from, got the phase: scheduled
//
// Profiles are refused if they would change the costs of no stage.
// RUN: not chimera-compile %t/alone.mlir --costs-from %t/profile-1.json -o %t/p 2>&1 | FileCheck %s --check-prefix=BARE
// BARE: alone.mlir:1:1: error: 'chimera.pipeline' op expected, for --costs-from, a pipeline with a model and a machine, got no model: add `of @MODEL`
// RUN: not chimera-compile %t/off.mlir --costs-from %t/profile-1.json -o %t/p 2>&1 | FileCheck %s --check-prefix=OFF
// OFF: off.mlir:3:1: error: {{.*}} got no machine: add `on @MACHINE`
// RUN: not chimera-compile %t/own.mlir --costs-from %t/profile-1.json -o %t/p 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES: own.mlir:3:1: error: {{.*}} got stages with costs of their own: delete the chimera.stage ops
//
// A profile is refused if it has no times that earlier profiles lack.
// RUN: not chimera-compile %t/two.mlir --costs-from %t/profile-1.json,%S/../Inputs/profile-1.json -o %t/p 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: two.mlir:3:1: error: {{.*}}profile-1.json: this profile adds nothing to the earlier ones of micro-batch size 1: expected whole backwards, split backwards or recomputes that they lack
//
// A profile of another model is refused even if the number of layers is the same.
// RUN: cp -r %S/../Inputs/exported %t/package
// RUN: not chimera-compile %t/exported.mlir --costs-from %t/profile-1.json -o %t/p 2>&1 | FileCheck %s --check-prefix=PACKAGE
// PACKAGE: exported.mlir:3:1: error: {{.*}}profile-1.json: the profile is of another model: expected 21 parameters in layer 0, got 640
//
// The output must not be a file that is also read.
// RUN: not chimera-compile %t/two.mlir --costs-from %t/profile-1.json -o %t/profile-1.json 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: sed 's/profile("none.json")/profile("profile-1.json")/' %t/missing.mlir > %t/named.mlir
// RUN: not chimera-compile %t/named.mlir -o %t/profile-1.json 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: not chimera-opt %t/named.mlir --chimera-to-scheduled --chimera-report=output=%t/profile-1.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: not chimera-opt %t/two.mlir --chimera-costs-from=profiles=%t/profile-1.json -o %t/profile-1.json 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not chimera-compile %t/exported.mlir -o %t/package/model.json 2>&1 | FileCheck %s --check-prefix=MODEL
// KEPT: profile-1.json: expected another file than a profile that is read
// RUN: not chimera-opt %t/two.mlir "--pass-pipeline=builtin.module(chimera-costs-from{profiles={%t/profile-1.json,%S/../Inputs/profile-1.json}})" -o %t/profile-1.json 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: cp %S/../Inputs/profile-1.json "%t/a profile=1.json"
// RUN: not chimera-opt %t/two.mlir --chimera-costs-from='profiles="%t/a profile=1.json"' -o "%t/a profile=1.json" 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: profile{{.}}1.json: expected a file that no other option names
// MODEL: chimera-compile: {{.*}}model.json: expected another file than a package that is read
// RUN: cmp %S/../Inputs/profile-1.json %t/profile-1.json
// RUN: cmp %S/../Inputs/exported/model.json %t/package/model.json

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

//--- off.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("1f1b")

//--- own.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(1) micro_batches(2) schedule("1f1b") time_unit(ns) {
  chimera.stage 0 layers(0, 4) cost <forward = 1, backward = 2>
      bytes <weights = 23040, optimizer = 46080, stash = 64, boundary = 512>
}

//--- two.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b")

//--- exported.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")
chimera.model @m exported("package")
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(4)

//--- neither.mlir
chimera.machine @here devices(4) memory(1 GiB)
