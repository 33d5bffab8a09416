// The reducer keeps the op with the error and almost nothing else.
//
// RUN: chimera-reduce %s --chimera-reduce=test=%S/Inputs/fails-to-schedule.sh | FileCheck %s --implicit-check-not="chimera."
// CHECK: chimera.pipeline @faulty stages(1) micro_batches(1) schedule("nonesuch"){{$}}
//
// In this step of 76 lines, one action is on the wrong worker.
// RUN: echo 'chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera")' | chimera-opt --chimera-to-scheduled | sed '/chimera.forward pipeline 1 stage 0 micro_batch 3/s/ on 3/ on 2/' > %t.mlir
// RUN: chimera-reduce %t.mlir --chimera-reduce=test=%S/Inputs/action-on-wrong-worker.sh -o %t.small
// RUN: %python -c "import sys; lines = len(open(sys.argv[1]).readlines()); sys.exit(lines > 16 and lines)" %t.small
// RUN: not %S/Inputs/action-on-wrong-worker.sh %t.small
//
// There is no test script, or the test script finds no error.
// RUN: not chimera-reduce %s --chimera-reduce 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: chimera-reduce: expected test=SCRIPT, a program that takes a file and exits with a nonzero status if the file shows the error, got none
// RUN: not chimera-reduce %t.small --chimera-reduce=test=%S/Inputs/fails-to-schedule.sh 2>&1 | FileCheck %s --check-prefix=SOUND
// SOUND: error: chimera-reduce: expected a module for which the test exits with a nonzero status, got 0
// RUN: not chimera-reduce %s --chimera-reduce=test=%S/Inputs/nonesuch.sh 2>&1 | FileCheck %s --check-prefix=SCRIPT
// SCRIPT: error: chimera-reduce: expected test=SCRIPT to be a program that can be run, got '{{.*}}nonesuch.sh'
//
// The output is the input file, which would be overwritten before it is read.
// RUN: not chimera-reduce %t.small --chimera-reduce=test=%S/Inputs/action-on-wrong-worker.sh -o %t.small 2>&1 | FileCheck %s --check-prefix=SELF
// SELF: chimera-reduce: {{.*}}.small: expected another file than the input
// RUN: not %S/Inputs/action-on-wrong-worker.sh %t.small

chimera.pipeline @sound stages(4) micro_batches(4) schedule("chimera")
chimera.pipeline @other stages(2) micro_batches(8) schedule("1f1b")
chimera.training @slowly learning_rate(0.5) seed(3)
chimera.pipeline @faulty of @used with @slowly stages(4) micro_batches(4)
    schedule("nonesuch", {pipelines = 4}) memory_cap(100000)
    link <latency = 3> recompute(all) split_backward {
  chimera.stage 0 layers(0, 6) cost <forward = 1, backward = 2>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
}
chimera.pipeline @third stages(2) micro_batches(2) schedule("gpipe")
chimera.model @used gpt2 layers(4) heads(4) width(128) context(128)
    vocabulary(256)
