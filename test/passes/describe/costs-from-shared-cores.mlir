// In these profiles, ranks shared cores. There is a warning, because the
// simulator slows such ranks down itself if the machine has node_cores.
//
// RUN: split-file %s %t
// RUN: sed 's/"unit"/"threads": 2, "cores_per_rank": 1.5, "unit"/' %S/../Inputs/profile-1.json > %t/shared.json
// RUN: sed 's/"unit"/"threads": 2, "cores_per_rank": 2, "unit"/' %S/../Inputs/profile-1.json > %t/own.json
// RUN: chimera-opt %t/cores.mlir --chimera-costs-from=profiles=%t/shared.json --chimera-partition -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: cores.mlir:1:1: warning: expected profiles of ranks that share no cores with node_cores, got {{.*}}shared.json, whose ranks had 1.50 cores each for 2 threads: its times already include waits for cores, which would count twice; profile a program of fewer workers, whose ranks share no cores
// RUN: chimera-plan %t/cores.mlir --batch 4 --costs-from %t/shared.json 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: warning: {{.*}}shared.json, whose ranks had 1.50 cores
//
// There is no warning if ranks had cores of their own, if an older profile does
// not have the number of cores, or if the machine has no node_cores.
// RUN: chimera-opt %t/cores.mlir --chimera-costs-from=profiles=%t/own.json --chimera-partition 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: chimera-opt %t/cores.mlir --chimera-costs-from=profiles=%S/../Inputs/profile-1.json --chimera-partition 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: chimera-opt %t/none.mlir --chimera-costs-from=profiles=%t/shared.json --chimera-partition 2>&1 | FileCheck %s --check-prefix=NONE
// NONE-NOT: warning
// NONE: chimera.stage 0

//--- cores.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s") node_devices(4) node_cores(2)
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b")

//--- none.mlir
chimera.machine @here devices(4) memory(1 GiB) speed("1 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @p of @m on @here stages(2) micro_batches(2) schedule("1f1b")
