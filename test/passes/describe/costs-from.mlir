// Profiles of any stages and micro-batch sizes give the costs of stages.
//
// RUN: split-file %s %t && cp %S/../Inputs/profile-*.json %t
// The stages as they were measured. A measured stage of two layers shares its
// costs between them.
// RUN: chimera-opt %t/four.mlir --chimera-costs-from=profiles=%t/profile-1.json --chimera-partition | FileCheck %s --check-prefix=FOUR
// FOUR: chimera.machine @here {{.*}} profile("{{.*}}/profile-1.json")
// FOUR: time_unit(ns)
// FOUR-NEXT: stage 0 layers(0, 1) cost <forward = 100, backward = 200, {{.*}}recompute = 95, update = 40>
// FOUR-NEXT: stage 1 layers(1, 2) cost <forward = 1000, backward = 2000, {{.*}}update = 40>
// FOUR-NEXT: stage 2 layers(2, 3) cost <forward = 1000, backward = 2000, {{.*}}update = 40>
// FOUR-NEXT: stage 3 layers(3, 4) cost <forward = 700, backward = 1500, {{.*}}update = 60>

// Other stages and another micro-batch size. With one profiled size, costs
// except updates are proportional to the size. With two sizes they are on the
// line through both, here 100 plus 50 for each sample.
// RUN: chimera-opt %t/two.mlir --chimera-costs-from=profiles=%t/profile-1.json --chimera-partition | FileCheck %s --check-prefix=TWO
// TWO: stage 0 layers(0, 2) cost <forward = 2200, backward = 4400, {{.*}}update = 80>
// TWO-NEXT: stage 1 layers(2, 4) cost <forward = 3400, backward = 7000, {{.*}}update = 100>
// RUN: chimera-opt %t/two.mlir --chimera-costs-from=profiles=%t/profile-1.json,%t/profile-3.json --chimera-partition | FileCheck %s --check-prefix=LINE
// LINE: stage 0 layers(0, 2) cost <forward = 1650, backward = 3300, {{.*}}update = 80>
// RUN: chimera-opt %t/seven.mlir --chimera-costs-from=profiles=%t/profile-3.json,%t/profile-1.json --chimera-partition | FileCheck %s --check-prefix=BEYOND
// BEYOND: stage 0 layers(0, 2) cost <forward = 4400, backward = 8800, {{.*}}update = 80>

// A machine can name its profiles itself, relative to the description's folder.
// All tools accept such a machine.
// RUN: chimera-opt %t/named.mlir --chimera-partition | FileCheck %s --check-prefix=TWO
// RUN: chimera-compile %t/two.mlir --costs-from %t/profile-1.json -o %t/program
// RUN: chimera-translate --program-to-json %t/program | FileCheck %s --check-prefix=PROGRAM
// PROGRAM: "forward": 2200
// RUN: chimera-plan %t/two.mlir --batch 4 --costs-from %t/profile-1.json,%t/profile-3.json -o %t/plan.mlir | FileCheck %s --check-prefix=PLAN --implicit-check-not="assumed: updates"
// PLAN: The best of each schedule
// RUN: chimera-opt %t/plan.mlir --chimera-partition | FileCheck %s --check-prefix=PLANNED
// PLANNED: chimera.machine @here {{.*}} profile("{{.*}}/profile-1.json", "{{.*}}/profile-3.json")

//--- four.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(4) micro_batches(2) schedule("1f1b")

//--- two.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(2)

//--- seven.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(7)

//--- named.mlir
chimera.machine @here devices(4) memory(1 GiB) profile("profile-1.json")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b") micro_batch_size(2)
