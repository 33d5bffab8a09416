// RUN: chimera-opt %s --chimera-communicate --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expected a step: run chimera-unroll first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// An action has a worker, but the op that uses its result has none.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.step {
    %t, %w = "values"() : () -> (!chimera.tokens<1>, !chimera.weights<1>)
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) ->
        (!chimera.activation<1>, !chimera.stash<1>)
    // expected-error@below {{expected an action to name its worker (on N): write it, or let chimera-schedule order all actions}}
    %x, %s1 = chimera.forward pipeline 0 stage 1 micro_batch 0 (%y, %w) :
        (!chimera.activation<1>, !chimera.weights<1>) ->
        (!chimera.activation<1>, !chimera.stash<1>)
    chimera.yield
  }
}

// -----

// The backward is on another worker than its stash, but a stash cannot be sent.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.step {
    %t, %w, %d, %g = "values"() : () -> (!chimera.tokens<1>, !chimera.weights<1>, !chimera.gradient<1>, !chimera.weight_gradient<1>)
    // expected-error@below {{expected only activations and gradients used on another worker, got '!chimera.stash<1>' on worker 1}}
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) ->
        (!chimera.activation<1>, !chimera.stash<1>)
    %r = chimera.backward pipeline 0 stage 0 micro_batch 0 on 1 (%s, %d, %w, %g) :
        (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>
    chimera.yield
  }
}
