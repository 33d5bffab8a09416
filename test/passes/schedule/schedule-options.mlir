// The options of a schedule are written in the description. A round trip keeps
// them, and the scheme uses them.
//
// RUN: split-file %s %t
// RUN: chimera-opt %t/four.mlir | chimera-opt | FileCheck %s --check-prefix=TEXT
// RUN: chimera-opt %t/four.mlir --emit-bytecode | chimera-opt | FileCheck %s --check-prefix=TEXT
// RUN: chimera-opt %t/four.mlir --chimera-timeline -o %t/out | FileCheck %s --check-prefix=FOUR
// RUN: chimera-opt %t/doubled.mlir --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2" -o %t/out | FileCheck %s --check-prefix=DOUBLED
// RUN: chimera-opt %t/pairs.mlir --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2" -o %t/out | FileCheck %s --check-prefix=PAIRS
// RUN: chimera-opt %t/halves.mlir --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=2" -o %t/out | FileCheck %s --check-prefix=HALVES
// RUN: chimera-opt --help | FileCheck %s --check-prefix=HELP

// TEXT: schedule("chimera", {pipelines = 4 : i64})

// Chimera (SC'21), figure 8: bubbles of D/f - 2 slots with 2f = 4 pipelines.
// FOUR: makespan 18 (one slot each)
// FOUR-NEXT: idle per worker: 2 2 2 2 2 2 2 2

// Chimera (SC'21), figure 7d. The step takes the time of 27 forwards.
// DOUBLED: makespan 27 (forward 1, backward 2, p2p 0)

// Figure 7c. The step takes the time of 28 forwards.
// PAIRS: P0   F01 =
// PAIRS: makespan 28 (forward 1, backward 2, p2p 0)

// Halving takes half of this time, with two halves for each backward.
// HALVES: P0   F0  F2
// HALVES: makespan 14 (forward 1, backward 2, p2p 0)

// HELP: Schedules:
// HELP: chimera
// HELP: pipelines
// HELP: concatenation
// HELP: gpipe
// HELP: 1f1b
// HELP: gems
// HELP: pipedream: {{.*}} (any D >= 1, S = D, any N >= D)
// HELP: pipedream-2bw: {{.*}} (any D >= 1, S = D, any N >= D)

//--- four.mlir
chimera.pipeline @p stages(8) micro_batches(8) schedule("chimera", {pipelines = 4})

//--- doubled.mlir
chimera.pipeline @p stages(4) micro_batches(8) schedule("chimera", {concatenation = "fine-tuned-doubling"})

//--- pairs.mlir
chimera.pipeline @p stages(4) micro_batches(8) schedule("chimera", {concatenation = "doubling"})

//--- halves.mlir
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {concatenation = "halving"})
