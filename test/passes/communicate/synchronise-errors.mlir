// RUN: chimera-opt %s --chimera-synchronise --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expected a step: run chimera-unroll first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// The summed value is not the result of an action.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.step {
    %g = "gradient"() : () -> !chimera.weight_gradient<1>
    // expected-error@below {{expected contributions made by actions that name their worker: run chimera-schedule first}}
    %r = chimera.all_reduce stage 0 width 1 (%g) : (!chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    chimera.yield
  }
}

// -----

// The summed value is the result of an action without a worker.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.step {
    %s, %w, %g = "values"() : () -> (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
    %h = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 (%s, %w, %g) :
        (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected contributions made by actions that name their worker: run chimera-schedule first}}
    %r = chimera.all_reduce stage 0 width 1 (%h) : (!chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    chimera.yield
  }
}

// -----

// The summed value is the result of another all-reduce.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.step {
    %s, %w, %g = "values"() : () -> (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
    %h = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 on 0 (%s, %w, %g) :
        (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    %r = chimera.all_reduce stage 0 width 1 (%h) : (!chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    // expected-error@below {{expected contributions made by actions that name their worker: run chimera-schedule first}}
    %q = chimera.all_reduce stage 0 width 1 (%r) : (!chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    chimera.yield
  }
}

// -----

// The sum of the losses is only reported, so no op may use it.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.step {
    %e = "values"() : () -> !chimera.loss<1>
    // expected-error@below {{expected no use of the sum of the losses}}
    %r = chimera.all_reduce stage 0 width 1 (%e) : (!chimera.loss<1>) -> !chimera.loss<1>
    %q = chimera.all_reduce stage 0 width 1 (%r) : (!chimera.loss<1>) -> !chimera.loss<1>
    chimera.yield
  }
}

// -----

// There are more buckets than an instruction can have results.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") bucket_bytes(15) {
  chimera.step {
    %s, %w, %g = "values"() : () -> (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<524288>)
    %h = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 on 0 (%s, %w, %g) :
        (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<524288>) -> !chimera.weight_gradient<524288>
    // expected-error@below {{expected at most 65535 buckets of a gradient, got more of 524288 bytes: raise bucket_bytes}}
    %r = chimera.all_reduce stage 0 width 2 (%h) : (!chimera.weight_gradient<524288>) -> !chimera.weight_gradient<524288>
    chimera.yield
  }
}
