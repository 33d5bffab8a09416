// Options that are "best": partition chooses and writes the setting with the
// shortest step, by the stages' own costs, of those that fit into the memory
// cap.
//
// RUN: split-file %s %t
// RUN: chimera-opt %t/best.mlir --chimera-partition | FileCheck %s --check-prefix=BEST
// BEST: @longer {{.*}}schedule("chimera", {concatenation = "halving"})
// With as many pipelines as stages, no worker waits for another one.
// BEST: @more {{.*}}schedule("chimera", {concatenation = "direct", pipelines = 4 : i64})
// BEST: @capped {{.*}}schedule("chimera", {concatenation = "direct", pipelines = 2 : i64})

// The program equals the program of the explicit setting, byte by byte.
// RUN: chimera-compile - -o %t/open < %t/open.mlir
// RUN: sed 's|"best"|"halving"|' %t/open.mlir | chimera-compile - -o %t/set
// RUN: cmp %t/open %t/set

// A report names a better setting, if there is one.
// RUN: chimera-opt %t/reported.mlir --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=NOTE
// NOTE-LABEL: direct: chimera
// NOTE: note {{.*}}concatenation = {{.*}} a step would take {{[0-9.]+}} % of this time, and no worker would need more memory
// NOTE-LABEL: best: chimera
// NOTE-NOT: of this time

// RUN: not chimera-opt %t/none.mlir --chimera-partition 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: none.mlir:1:1: error: 'chimera.pipeline' op schedule "chimera" (any D >= 2, S = D, any N >= 1): expected at least 2 workers for two directions, got 1

//--- best.mlir
chimera.pipeline @longer stages(4) micro_batches(16) schedule("chimera", {concatenation = "best"}) time_unit(us) {
  chimera.stage 0 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 2 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 3 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}
chimera.pipeline @more stages(4) micro_batches(4) schedule("chimera", {concatenation = "best", pipelines = "best"})
chimera.pipeline @capped stages(4) micro_batches(4) schedule("chimera", {concatenation = "best", pipelines = "best"}) memory_cap(1100)

//--- open.mlir
chimera.pipeline @p stages(4) micro_batches(16) schedule("chimera", {concatenation = "best"}) time_unit(us) {
  chimera.stage 0 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 2 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 3 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}

//--- reported.mlir
chimera.pipeline @direct stages(4) micro_batches(16) schedule("chimera") time_unit(us) {
  chimera.stage 0 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 2 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 3 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}
chimera.pipeline @best stages(4) micro_batches(16) schedule("chimera", {concatenation = "best"}) time_unit(us) {
  chimera.stage 0 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 2 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 3 cost <forward = 20, backward = 40> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}

//--- none.mlir
chimera.pipeline @p stages(1) micro_batches(4) schedule("chimera", {pipelines = "best"})
