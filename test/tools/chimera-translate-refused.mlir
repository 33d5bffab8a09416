// If verifyProgram refuses the program, its message has the location of the op.
//
// RUN: not chimera-translate --chimera-to-program %s -o %t 2>&1 | FileCheck %s
// RUN: not ls %t
//
// CHECK: error: worker 0 instruction 0 (load tokens pipeline 0 stage 0 micro-batch 0) at {{.*}}chimera-translate-refused.mlir:15:10: expected
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.worker 0 holds [0, 0] arguments [0, 1] arena 128 peak 2 at 0 {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.buffer 1 : !chimera.optimizer_state<1> at 64
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 buffers [0] : !chimera.tokens<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
