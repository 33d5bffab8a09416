// RUN: chimera-opt %s --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expects parent op 'chimera.pipeline'}}
chimera.step { chimera.yield }

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{'chimera.step' op expected a chimera.yield at its end}}
  chimera.step { "other"() : () -> () }
}

// -----

// The step has an empty body.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{failed to verify constraint: region with 1 blocks}}
  "chimera.step"() ({}) : () -> ()
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expects a non-empty block}}
  "chimera.step"() ({
  ^bb0:
  }) : () -> ()
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected each replica's weights, optimizer state, stashes and activations as arguments, got '!chimera.weights<1>'}}
  chimera.step {
  ^bb0(%w: !chimera.weights<1>):
    chimera.yield %w : !chimera.weights<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected each replica's weights, optimizer state, stashes and activations as arguments, got '!chimera.optimizer_state<1>', '!chimera.weights<1>'}}
  chimera.step {
  ^bb0(%o: !chimera.optimizer_state<1>, %w: !chimera.weights<1>):
    chimera.yield %o, %w : !chimera.optimizer_state<1>, !chimera.weights<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{'chimera.step' op expected the yielded types to be the arguments'}}
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield %w : !chimera.weights<1>
  }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a chimera.step alone or a chimera.prologue, a chimera.step and a chimera.epilogue, in this order}}
  chimera.prologue { chimera.yield }
  chimera.step { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected a chimera.step alone or a chimera.prologue, a chimera.step and a chimera.epilogue, in this order}}
  chimera.step { chimera.yield }
  chimera.prologue { chimera.yield }
  chimera.epilogue { chimera.yield }
}

// -----

// The arguments of a prologue must be only weights and optimizer state.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{'chimera.prologue' op expected pairs of weights and optimizer state as arguments, got '!chimera.weights<1>', '!chimera.weights<1>', '!chimera.optimizer_state<1>'}}
  chimera.prologue {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %v, %w, %o : !chimera.weights<1>, !chimera.weights<1>,
        !chimera.optimizer_state<1>
  }
  chimera.step { chimera.yield }
  chimera.epilogue { chimera.yield }
}

// -----

chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{'chimera.prologue' op expected it to yield each replica's weights, optimizer state, stashes and activations, got '!chimera.optimizer_state<1>', '!chimera.weights<1>'}}
  chimera.prologue {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield %o, %w : !chimera.optimizer_state<1>, !chimera.weights<1>
  }
  chimera.step { chimera.yield }
  chimera.epilogue { chimera.yield }
}

// -----

// The results of an epilogue must be only weights and optimizer state.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.prologue { chimera.yield }
  chimera.step { chimera.yield }
  // expected-error@below {{'chimera.epilogue' op expected it to yield pairs of weights and optimizer state, got '!chimera.weights<1>', '!chimera.weights<1>', '!chimera.optimizer_state<1>'}}
  chimera.epilogue {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %v, %w, %o : !chimera.weights<1>, !chimera.weights<1>,
        !chimera.optimizer_state<1>
  }
}

// -----

// A section must yield the values that the next section has as arguments.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.prologue {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
  // expected-error@below {{expected the step to take the types that the prologue yields, '!chimera.weights<1>', '!chimera.optimizer_state<1>', got '!chimera.weights<1>', '!chimera.weights<1>', '!chimera.optimizer_state<1>'}}
  chimera.step {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %v, %w, %o : !chimera.weights<1>, !chimera.weights<1>,
        !chimera.optimizer_state<1>
  }
  chimera.epilogue {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %w, %o : !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// If a step has several versions of weights, a prologue must make them.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  // expected-error@below {{expected pairs of weights and optimizer state as arguments without a prologue and an epilogue}}
  chimera.step {
  ^bb0(%v: !chimera.weights<1>, %w: !chimera.weights<1>,
       %o: !chimera.optimizer_state<1>):
    chimera.yield %v, %w, %o : !chimera.weights<1>, !chimera.weights<1>,
        !chimera.optimizer_state<1>
  }
}

// -----

%w = "values"() : () -> !chimera.optimizer_state<1>
// expected-error@below {{invalid kind of Type specified}}
%v = chimera.copy pipeline 0 stage 0 (%w) : !chimera.optimizer_state<1>

// -----

%w, %o, %g = "values"() : () -> (!chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>)
// expected-error@below {{attribute 'micro_batch' failed to satisfy constraint}}
%0:2 = chimera.optimizer_step pipeline 0 stage 0 micro_batch -1 (%w, %o, %g) :
    !chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>

// -----

// expected-error@below {{expects parent op to be one of 'chimera.prologue, chimera.step, chimera.epilogue, chimera.worker, chimera.group'}}
chimera.yield

// -----

// expected-error@below {{result #0 must be tokens or labels, but got '!chimera.loss<1>'}}
%0 = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.loss<1>

// -----

// expected-error@below {{attribute 'pipeline' failed to satisfy constraint: a whole number of at least 0}}
%0 = chimera.load pipeline -1 stage 0 micro_batch 0 : !chimera.tokens<1>

// -----

// expected-error@below {{attribute 'stage' failed to satisfy constraint}}
%0 = chimera.load pipeline 0 stage -1 micro_batch 0 : !chimera.tokens<1>

// -----

// expected-error@below {{attribute 'micro_batch' failed to satisfy constraint}}
%0 = chimera.load pipeline 0 stage 0 micro_batch -1 : !chimera.tokens<1>

// -----

// expected-error@below {{attribute 'worker' failed to satisfy constraint}}
%0 = chimera.load pipeline 0 stage 0 micro_batch 0 on -1 : !chimera.tokens<1>

// -----

// expected-error@below {{integer constant out of range for attribute}}
%0 = chimera.load pipeline 5000000000 stage 0 micro_batch 0 : !chimera.tokens<1>

// -----

// expected-error@below {{must be tokens or labels, but got '!chimera.loss<1>'}}
%0 = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.loss<1>

// -----

%x, %w = "values"() : () -> (!chimera.activation<1>, !chimera.weights<1>)
// expected-error@below {{expected tokens as input of stage 0, got '!chimera.activation<1>'}}
%0:2 = chimera.forward pipeline 0 stage 0 micro_batch 0 (%x, %w) :
    (!chimera.activation<1>, !chimera.weights<1>) ->
    (!chimera.activation<1>, !chimera.stash<1>)

// -----

%x, %w = "values"() : () -> (!chimera.tokens<1>, !chimera.weights<1>)
// expected-error@below {{expected an activation as input of stage 2, got '!chimera.tokens<1>'}}
%0:2 = chimera.forward pipeline 0 stage 2 micro_batch 0 (%x, %w) :
    (!chimera.tokens<1>, !chimera.weights<1>) ->
    (!chimera.activation<1>, !chimera.stash<1>)

// -----

%x, %w, %l = "values"() : () -> (!chimera.activation<1>, !chimera.weights<1>, !chimera.labels<1>)
// expected-error@below {{expected 1 losses, as it takes labels, and then stashes, got '!chimera.activation<1>', '!chimera.stash<1>'}}
%0:2 = chimera.forward pipeline 0 stage 1 micro_batch 0 (%x, %w, %l) :
    (!chimera.activation<1>, !chimera.weights<1>, !chimera.labels<1>) ->
    (!chimera.activation<1>, !chimera.stash<1>)

// -----

%x, %w = "values"() : () -> (!chimera.activation<1>, !chimera.weights<1>)
// expected-error@below {{expected an activation, as it takes no labels, and then stashes, got '!chimera.loss<1>', '!chimera.stash<1>'}}
%0:2 = chimera.forward pipeline 0 stage 1 micro_batch 0 (%x, %w) :
    (!chimera.activation<1>, !chimera.weights<1>) ->
    (!chimera.loss<1>, !chimera.stash<1>)

// -----

%x, %w = "values"() : () -> (!chimera.activation<1>, !chimera.weights<1>)
// expected-error@below {{attribute 'slot' failed to satisfy constraint}}
%0:2 = chimera.forward pipeline 0 stage 1 micro_batch 0 slot -1 (%x, %w) :
    (!chimera.activation<1>, !chimera.weights<1>) ->
    (!chimera.activation<1>, !chimera.stash<1>)

// -----

// The operands have wrong types: a loss instead of tokens.
%x, %w = "values"() : () -> (!chimera.loss<1>, !chimera.weights<1>)
// expected-error@below {{operand #0 must be tokens or an activation, but got '!chimera.loss<1>'}}
%0:2 = chimera.forward pipeline 0 stage 1 micro_batch 0 (%x, %w) :
    (!chimera.loss<1>, !chimera.weights<1>) ->
    (!chimera.activation<1>, !chimera.stash<1>)

// -----

%x, %w = "values"() : () -> (!chimera.activation<1>, !chimera.weights<1>)
// expected-error@below {{result #0 must be variadic of an activation, a loss or a stash, but got '!chimera.gradient<1>'}}
%0:2 = chimera.forward pipeline 0 stage 1 micro_batch 0 (%x, %w) :
    (!chimera.activation<1>, !chimera.weights<1>) ->
    (!chimera.gradient<1>, !chimera.stash<1>)

// -----

// A forward has one activation, for any number of micro-batches.
%x, %w = "values"() : () -> (!chimera.activation<2>, !chimera.weights<1>)
// expected-error@below {{expected an activation, as it takes no labels, and then stashes, got '!chimera.activation<1>', '!chimera.activation<1>', '!chimera.stash<1>'}}
%0:3 = chimera.forward pipeline 0 stage 1 micro_batch 0 count 2 (%x, %w) :
    (!chimera.activation<2>, !chimera.weights<1>) ->
    (!chimera.activation<1>, !chimera.activation<1>, !chimera.stash<1>)

// -----

// A forward has one loss for each micro-batch.
%x, %w, %l = "values"() : () -> (!chimera.activation<2>, !chimera.weights<1>, !chimera.labels<2>)
// expected-error@below {{expected 2 losses, as it takes labels, and then stashes, got '!chimera.loss<1>', '!chimera.stash<1>'}}
%0:2 = chimera.forward pipeline 0 stage 1 micro_batch 0 count 2 (%x, %w, %l) :
    (!chimera.activation<2>, !chimera.weights<1>, !chimera.labels<2>) ->
    (!chimera.loss<1>, !chimera.stash<1>)

// -----

// The forward has no results.
%x, %w = "values"() : () -> (!chimera.activation<1>, !chimera.weights<1>)
// expected-error@below {{expected an activation, as it takes no labels, and then stashes, got }}
chimera.forward pipeline 0 stage 1 micro_batch 0 (%x, %w) :
    (!chimera.activation<1>, !chimera.weights<1>) -> ()

// -----

%x, %w = "values"() : () -> (!chimera.activation<1>, !chimera.weights<1>)
// expected-error@below {{attribute 'count' failed to satisfy constraint: a whole number from 1 to 65535}}
%0 = chimera.forward pipeline 0 stage 1 micro_batch 0 count 0 (%x, %w) :
    (!chimera.activation<1>, !chimera.weights<1>) -> !chimera.activation<1>

// -----

// expected-error@below {{attribute 'count' failed to satisfy constraint}}
%0 = chimera.load pipeline 0 stage 0 micro_batch 0 count 65536 : !chimera.tokens<1>

// -----

%x, %w = "values"() : () -> (!chimera.tokens<1>, !chimera.weights<1>)
// expected-error@below {{expected an activation as input of stage 2, got '!chimera.tokens<1>'}}
%0 = chimera.recompute pipeline 0 stage 2 micro_batch 0 (%x, %w) :
    (!chimera.tokens<1>, !chimera.weights<1>) -> !chimera.stash<1>

// -----

%x, %w = "values"() : () -> (!chimera.tokens<1>, !chimera.weights<1>)
// expected-error@below {{expected a part below 2, got 2}}
%0 = chimera.recompute pipeline 0 stage 0 micro_batch 0 part 2 of 2 (%x, %w) :
    (!chimera.tokens<1>, !chimera.weights<1>) -> !chimera.stash<1>

// -----

%s, %y, %w, %g = "values"() : () -> (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
// expected-error@below {{expected a part below 2, got 3}}
%0 = chimera.backward pipeline 0 stage 0 micro_batch 0 part 3 of 2 (%s, %y, %w, %g) :
    (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) ->
    !chimera.weight_gradient<1>

// -----

%s, %y, %w = "values"() : () -> (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>)
// expected-error@below {{expected a part below 2, got 2}}
%0 = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 part 2 of 2 (%s, %y, %w) :
    (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>) -> !chimera.weight_stash<1>

// -----

%s, %w, %g = "values"() : () -> (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
// expected-error@below {{expected a part below 1, got 1}}
%0 = "chimera.weight_gradient"(%s, %w, %g) {pipeline = 0 : i32, stage = 0 : i32, micro_batch = 0 : i32, part = 1 : i32} :
    (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>

// -----

%s, %w, %g = "values"() : () -> (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
// expected-error@below {{attribute 'parts' failed to satisfy constraint: a whole number from 1 to 255}}
%0 = chimera.weight_gradient pipeline 0 stage 0 micro_batch 0 part 0 of 256 (%s, %w, %g) :
    (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>

// -----

%s, %y, %w, %g = "values"() : () -> (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
// expected-error@below {{expected the sum to keep its type '!chimera.weight_gradient<1>', got '!chimera.weight_gradient<2>'}}
%0:2 = chimera.backward pipeline 0 stage 1 micro_batch 0 (%s, %y, %w, %g) :
    (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) ->
    (!chimera.weight_gradient<2>, !chimera.gradient<1>)

// -----

%s, %y, %w, %g = "values"() : () -> (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
// expected-error@below {{expected no input gradient on stage 0}}
%0:2 = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s, %y, %w, %g) :
    (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) ->
    (!chimera.weight_gradient<1>, !chimera.gradient<1>)

// -----

%s, %y, %w, %g = "values"() : () -> (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
// expected-error@below {{expected an input gradient on a stage after 0}}
%0 = chimera.backward pipeline 0 stage 1 micro_batch 0 (%s, %y, %w, %g) :
    (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) ->
    !chimera.weight_gradient<1>

// -----

%s, %y, %w, %g = "values"() : () -> (!chimera.stash<1>, !chimera.activation<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
// expected-error@below {{operand #1 must be a gradient or a loss, but got '!chimera.activation<1>'}}
%0 = chimera.backward pipeline 0 stage 0 micro_batch 0 (%s, %y, %w, %g) :
    (!chimera.stash<1>, !chimera.activation<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) ->
    !chimera.weight_gradient<1>

// -----

%s, %y, %w = "values"() : () -> (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>)
// expected-error@below {{expected no input gradient on stage 0}}
%0:2 = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 (%s, %y, %w) :
    (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>) ->
    (!chimera.weight_stash<1>, !chimera.gradient<1>)

// -----

%s, %y, %w = "values"() : () -> (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>)
// expected-error@below {{expected an input gradient on a stage after 0}}
%0 = chimera.input_gradient pipeline 0 stage 1 micro_batch 0 (%s, %y, %w) :
    (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>) ->
    !chimera.weight_stash<1>

// -----

%s, %w, %g = "values"() : () -> (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>)
// expected-error@below {{expected the sum to keep its type}}
%0 = chimera.weight_gradient pipeline 0 stage 1 micro_batch 0 (%s, %w, %g) :
    (!chimera.weight_stash<1>, !chimera.weights<1>, !chimera.weight_gradient<1>) ->
    !chimera.weight_gradient<2>

// -----

// expected-error@below {{expected at least one contribution}}
chimera.all_reduce stage 0 width 1 () : () -> ()

// -----

%g, %h = "values"() : () -> (!chimera.weight_gradient<1>, !chimera.weight_gradient<2>)
// expected-error@below {{expected contributions of one type}}
%0:2 = chimera.all_reduce stage 0 width 1 (%g, %h) :
    (!chimera.weight_gradient<1>, !chimera.weight_gradient<2>) ->
    (!chimera.weight_gradient<1>, !chimera.weight_gradient<2>)

// -----

// An all-reduce has one result for each replica.
%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected 2 results of type '!chimera.weight_gradient<1>', got '!chimera.weight_gradient<1>'}}
%0 = chimera.all_reduce stage 0 width 1 (%g, %g) :
    (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>) ->
    !chimera.weight_gradient<1>

// -----

// An all-reduce of losses has a single result.
%e = "values"() : () -> !chimera.loss<1>
// expected-error@below {{expected 1 results of type '!chimera.loss<1>', got '!chimera.loss<1>', '!chimera.loss<1>'}}
%0:2 = chimera.all_reduce stage 0 width 1 (%e, %e) :
    (!chimera.loss<1>, !chimera.loss<1>) -> (!chimera.loss<1>, !chimera.loss<1>)

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{attribute 'width' failed to satisfy constraint: a whole number from 1 to 2147483647}}
%0 = chimera.all_reduce stage 0 width 0 (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>

// -----

%s = "values"() : () -> !chimera.stash<1>
// expected-error@below {{operand #0 must be variadic of a weight gradient, a loss or a squared norm, but got '!chimera.stash<1>'}}
%0 = chimera.all_reduce stage 0 width 1 (%s) :
    (!chimera.stash<1>) -> !chimera.stash<1>

// -----

%w, %o, %g = "values"() : () -> (!chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>)
// expected-error@below {{failed to verify that all of {weights, new_weights} have same type}}
%0:2 = "chimera.optimizer_step"(%w, %o, %g) {pipeline = 0 : i32, stage = 0 : i32} :
    (!chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>) ->
    (!chimera.weights<2>, !chimera.optimizer_state<1>)

// -----

%w, %o, %g = "values"() : () -> (!chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>)
// expected-error@below {{failed to verify that all of {state, new_state} have same type}}
%0:2 = "chimera.optimizer_step"(%w, %o, %g) {pipeline = 0 : i32, stage = 0 : i32} :
    (!chimera.weights<1>, !chimera.optimizer_state<1>, !chimera.weight_gradient<1>) ->
    (!chimera.weights<1>, !chimera.optimizer_state<2>)

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected an even number of contributions, of both stages in turn, got 1}}
%0 = chimera.all_reduce stage 0 tied 3 width 1 (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.weight_gradient<1>

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected a tied stage after stage 3, got 3}}
%0:2 = chimera.all_reduce stage 3 tied 3 width 1 (%g, %g) :
    (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>) ->
    (!chimera.weight_gradient<1>, !chimera.weight_gradient<1>)

// -----

%e = "values"() : () -> !chimera.loss<1>
// expected-error@below {{expected no tied stage for an all-reduce of losses}}
%0 = chimera.all_reduce stage 0 tied 3 width 1 (%e, %e) :
    (!chimera.loss<1>, !chimera.loss<1>) -> !chimera.loss<1>

// -----

%n = "values"() : () -> !chimera.squared_norm<8>
// expected-error@below {{expected no tied stage for an all-reduce of squared norms}}
%0:2 = chimera.all_reduce stage 0 tied 3 width 1 (%n, %n) :
    (!chimera.squared_norm<8>, !chimera.squared_norm<8>) -> (!chimera.squared_norm<8>, !chimera.squared_norm<8>)

// -----

%n = "values"() : () -> !chimera.squared_norm<8>
// expected-error@below {{expected the squared norms of 2 stages of each pipeline, got 3}}
%0:3 = chimera.all_reduce stage 1 width 1 (%n, %n, %n) :
    (!chimera.squared_norm<8>, !chimera.squared_norm<8>, !chimera.squared_norm<8>) -> (!chimera.squared_norm<8>, !chimera.squared_norm<8>, !chimera.squared_norm<8>)
