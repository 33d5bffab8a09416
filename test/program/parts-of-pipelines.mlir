// Two pipelines that cut micro-batches into different numbers of parts: one
// part, and three, which 8 bytes of tokens cannot have.
//
// RUN: not chimera-compile %s -o %t.program 2>&1 | FileCheck %s
// CHECK: error: worker 0 {{.*}} (load tokens pipeline 1 stage 0 micro-batches 1 to 2) {{.*}}: expected bytes of tokens that its 2 micro-batches divide, and the 3 parts of one, got 16
// CHECK: error: worker 0 {{.*}} (load labels pipeline 1 {{.*}}: expected bytes of labels that its 2 micro-batches divide, and the 3 parts of one, got 16
//
// 24 bytes can have both.
// RUN: sed -e 's/tokens<8>/tokens<24>/g; s/labels<8>/labels<24>/g; s/tokens<16>/tokens<48>/g; s/labels<16>/labels<48>/g' %s > %t.mlir
// RUN: chimera-compile %t.mlir -o %t.program
chimera.pipeline @d stages(1) micro_batches(3) schedule("mine") time_unit(slot) {
  chimera.stage 0 cost <forward = 3, backward = 6, input_gradient = 3, weight_gradient = 3, recompute = 3> bytes <weights = 64, optimizer = 128, stash = 66, boundary = 66>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.direction 1 down on [0] micro_batches [1, 2] forwards [2] backward_parts 3
  chimera.step {
  ^bb0(%w0: !chimera.weights<64>, %o0: !chimera.optimizer_state<128>, %w1: !chimera.weights<64>, %o1: !chimera.optimizer_state<128>):
    %t0 = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<8>
    %l0 = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.labels<8>
    %f0, %s0 = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0(%t0, %w0, %l0) : (!chimera.tokens<8>, !chimera.weights<64>, !chimera.labels<8>) -> (!chimera.loss<8>, !chimera.stash<66>)
    %g0 = chimera.backward pipeline 0 stage 0 micro_batch 0 on 0(%s0, %f0, %w0) : (!chimera.stash<66>, !chimera.loss<8>, !chimera.weights<64>) -> !chimera.weight_gradient<64>
    %t1 = chimera.load pipeline 1 stage 0 micro_batch 1 count 2 on 0 : !chimera.tokens<16>
    %l1 = chimera.load pipeline 1 stage 0 micro_batch 1 count 2 on 0 : !chimera.labels<16>
    %f1:2, %s1:6 = chimera.forward pipeline 1 stage 0 micro_batch 1 count 2 on 0(%t1, %w1, %l1) : (!chimera.tokens<16>, !chimera.weights<64>, !chimera.labels<16>) -> (!chimera.loss<8>, !chimera.loss<8>, !chimera.stash<22>, !chimera.stash<22>, !chimera.stash<22>, !chimera.stash<22>, !chimera.stash<22>, !chimera.stash<22>)
    %b0 = chimera.backward pipeline 1 stage 0 micro_batch 1 part 0 of 3 on 0(%s1#0, %f1#0, %w1) : (!chimera.stash<22>, !chimera.loss<8>, !chimera.weights<64>) -> !chimera.weight_gradient<64>
    %b1 = chimera.backward pipeline 1 stage 0 micro_batch 1 part 1 of 3 on 0(%s1#1, %f1#0, %w1, %b0) : (!chimera.stash<22>, !chimera.loss<8>, !chimera.weights<64>, !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    %b2 = chimera.backward pipeline 1 stage 0 micro_batch 1 part 2 of 3 on 0(%s1#2, %f1#0, %w1, %b1) : (!chimera.stash<22>, !chimera.loss<8>, !chimera.weights<64>, !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    %b3 = chimera.backward pipeline 1 stage 0 micro_batch 2 part 0 of 3 on 0(%s1#3, %f1#1, %w1, %b2) : (!chimera.stash<22>, !chimera.loss<8>, !chimera.weights<64>, !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    %b4 = chimera.backward pipeline 1 stage 0 micro_batch 2 part 1 of 3 on 0(%s1#4, %f1#1, %w1, %b3) : (!chimera.stash<22>, !chimera.loss<8>, !chimera.weights<64>, !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    %b5 = chimera.backward pipeline 1 stage 0 micro_batch 2 part 2 of 3 on 0(%s1#5, %f1#1, %w1, %b4) : (!chimera.stash<22>, !chimera.loss<8>, !chimera.weights<64>, !chimera.weight_gradient<64>) -> !chimera.weight_gradient<64>
    %r:2 = chimera.all_reduce stage 0 width 1(%g0, %b5) : (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>) -> (!chimera.weight_gradient<64>, !chimera.weight_gradient<64>)
    %rl = chimera.all_reduce stage 0 width 1(%f0, %f1#0, %f1#1) : (!chimera.loss<8>, !chimera.loss<8>, !chimera.loss<8>) -> !chimera.loss<8>
    %nw0, %no0 = chimera.optimizer_step pipeline 0 stage 0 on 0(%w0, %o0, %r#0) : <64>, <128>, <64>
    %nw1, %no1 = chimera.optimizer_step pipeline 1 stage 0 on 0(%w1, %o1, %r#1) : <64>, <128>, <64>
    chimera.yield %nw0, %no0, %nw1, %no1 : !chimera.weights<64>, !chimera.optimizer_state<128>, !chimera.weights<64>, !chimera.optimizer_state<128>
  }
}
