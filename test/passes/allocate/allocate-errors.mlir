// RUN: chimera-opt %s --chimera-allocate --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expected workers: run chimera-project first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected workers: run chimera-project first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.step { chimera.yield }
}

// -----

// The worker is already allocated.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    // expected-error@below {{expected an instruction of a projected worker}}
    chimera.buffer 0 : !chimera.weights<1> at 0
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A worker runs only the start of an all-reduce, never chimera.all_reduce.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected an instruction of a projected worker}}
    %r = chimera.all_reduce stage 0 width 1 (%g) : (!chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    // expected-error@below {{expected an instruction of a projected worker}}
    "other"() : () -> ()
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected values of less than 2^62 bytes in total}}
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<9223372036854775807>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// Each value alone is small enough, but the sum of their bytes is too large.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected values of less than 2^62 bytes in total}}
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %g = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<3000000000000000000>
    %h = chimera.load pipeline 0 stage 0 micro_batch 1 : !chimera.tokens<3000000000000000000>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A gradient sum is used for two updates.
chimera.pipeline @p stages(1) micro_batches(2) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %r = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_stash<1>
    %g0 = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 (%r, %w) :
        (!chimera.weight_stash<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected no later use of operand 2, which it updates in place}}
    %g1 = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 (%r, %w, %g0) :
        (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    %g2 = chimera.weight_gradient pipeline 0 stage 0 micro_batch 1 (%r, %w, %g0) :
        (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The weights are updated, and the old weights are yielded.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected no later use of operand 0, which it updates in place}}
    %nw, %no = chimera.optimizer_step pipeline 0 stage 0 (%w, %o, %g) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A gradient is summed in place while another sum still needs it.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<1>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected no later use of operand 0, which it updates in place}}
    %r = chimera.all_reduce_start stage 0 width 1 workers [0, 1] keys [0, 1] (%g) :
        (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>
    %a = chimera.wait %r : !chimera.arriving<!chimera.weight_gradient<1>> -> !chimera.weight_gradient<1>
    %nw, %no = chimera.optimizer_step pipeline 0 stage 0 (%w, %o, %g) :
        !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A gradient is cut while the whole gradient is still needed.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.worker 0 holds [0, 0] {
  ^bb0(%w: !chimera.weights<16>, %o: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    %l = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.labels<1>
    %e, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 (%t, %w, %l) :
        (!chimera.tokens<1>, !chimera.weights<16>, !chimera.labels<1>) -> (!chimera.loss<1>, !chimera.stash<1>)
    %g = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s, %e, %w) :
        (!chimera.stash<1>, !chimera.loss<1>, !chimera.weights<16>) -> !chimera.weight_gradient<16>
    // expected-error@below {{expected no later use of operand 0, which it updates in place}}
    %b:2 = chimera.split pipeline 0 stage 0 (%g) : (!chimera.weight_gradient<16>) ->
        (!chimera.weight_gradient<8>, !chimera.weight_gradient<8>)
    %nw, %no = chimera.optimizer_step pipeline 0 stage 0 (%w, %o, %g) :
        !chimera.weights<16>, !chimera.optimizer_state<1>, !chimera.weight_gradient<16>
    chimera.yield %w, %o : !chimera.weights<16>, !chimera.optimizer_state<1>
  }
}
