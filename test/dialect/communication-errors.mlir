// RUN: chimera-opt %s --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

%y = "values"() : () -> !chimera.activation<1>
// expected-error@below {{expected another worker as peer, got worker 1 itself}}
%p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.activation<1>

// -----

%y = "values"() : () -> !chimera.stash<1>
// expected-error@below {{operand #0 must be an activation or a gradient, but got '!chimera.stash<1>'}}
%p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 : !chimera.stash<1>

// -----

%y = "values"() : () -> !chimera.activation<1>
// expected-error@below {{attribute 'peer' failed to satisfy constraint: a whole number of at least 0}}
%p = chimera.post_send %y to -1 pipeline 0 stage 0 micro_batch 0 : !chimera.activation<1>

// -----

%y = "values"() : () -> !chimera.gradient<1>
// expected-error@below {{expected a part below 2, got 2}}
%p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 part 2 of 2 : !chimera.gradient<1>

// -----

%y = "values"() : () -> !chimera.gradient<1>
// expected-error@below {{expected a part of one micro-batch, got one of 2}}
%p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 count 2 part 0 of 2 : !chimera.gradient<1>

// -----

// expected-error@below {{expected a part below 3, got 4}}
%q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 part 4 of 3 : !chimera.arriving<!chimera.gradient<1>>

// -----

// expected-error@below {{expected a part of one micro-batch, got one of 3}}
%q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 count 3 part 1 of 2 : !chimera.arriving<!chimera.gradient<1>>

// -----

// expected-error@below {{expected another worker as peer, got worker 2 itself}}
%q = chimera.post_receive from 2 pipeline 0 stage 0 micro_batch 0 on 2 : !chimera.arriving<!chimera.activation<1>>

// -----

// expected-error@below {{expected an activation or a gradient to arrive, got '!chimera.loss<1>'}}
%q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.loss<1>>

// -----

// expected-error@below {{invalid kind of Type specified}}
%q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.sending

// -----

// expected-error@below {{'chimera.group' op expected a chimera.yield at its end}}
"chimera.group"() ({ "other"() : () -> () }) : () -> ()

// -----

// expected-error@below {{failed to verify constraint: region with 1 blocks}}
"chimera.group"() ({}) : () -> ()

// -----

// expected-error@below {{expected at least one post}}
"chimera.group"() ({ chimera.yield }) : () -> ()

// -----

// expected-error@below {{region should have no arguments}}
"chimera.group"() ({
^bb0(%y: !chimera.activation<1>):
  chimera.yield
}) : () -> ()

// -----

%t = chimera.group on 1 {
  // expected-error@below {{expected only posts in a group}}
  %l = chimera.load pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.tokens<1>
  %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<1>>
  chimera.yield %q : !chimera.arriving<!chimera.activation<1>>
} : !chimera.arriving<!chimera.activation<1>>

// -----

%t = chimera.group on 1 {
  // expected-error@below {{expected a post on the worker of its group}}
  %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 2 : !chimera.arriving<!chimera.activation<1>>
  chimera.yield %q : !chimera.arriving<!chimera.activation<1>>
} : !chimera.arriving<!chimera.activation<1>>

// -----

// The group yields its transfers in another order than it posts them.
%y = "values"() : () -> !chimera.activation<1>
// expected-error@below {{expected it to yield the transfers it posts, in order}}
%t:2 = chimera.group {
  %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 : !chimera.activation<1>
  %q = chimera.post_send %y to 2 pipeline 0 stage 0 micro_batch 0 : !chimera.activation<1>
  chimera.yield %q, %p : !chimera.sending, !chimera.sending
} : !chimera.sending, !chimera.sending

// -----

%y = "values"() : () -> !chimera.activation<1>
// expected-error@below {{expected its results to be the transfers it yields}}
%t:2 = chimera.group {
  %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 : !chimera.activation<1>
  chimera.yield %p : !chimera.sending
} : !chimera.sending, !chimera.sending

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected a key for each contribution, got 1 keys for 2}}
%r = chimera.all_reduce_start stage 0 width 1 workers [0, 1] keys [0] (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected a weight gradient, a loss or a squared norm to arrive, got '!chimera.activation<1>'}}
%r = chimera.all_reduce_start stage 0 width 1 workers [0, 1] keys [0, 1] (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.activation<1>>

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected contributions of type '!chimera.loss<1>', got '!chimera.weight_gradient<1>'}}
%r = chimera.all_reduce_start stage 0 width 1 workers [0, 1] keys [0, 1] (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.loss<1>>

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected 2 contributions of worker 1, got 1}}
%r = chimera.all_reduce_start stage 0 width 1 workers [1, 1] keys [0, 1] on 1 (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{attribute 'width' failed to satisfy constraint}}
%r = chimera.all_reduce_start stage 0 width -3 workers [0] keys [0] (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>

// -----

%y = "values"() : () -> !chimera.sending
// expected-error@below {{expected no result for a send}}
%x = chimera.wait %y : !chimera.sending -> !chimera.activation<1>

// -----

%y = "values"() : () -> !chimera.arriving<!chimera.activation<1>>
// expected-error@below {{expected a result of type '!chimera.activation<1>'}}
chimera.wait %y : !chimera.arriving<!chimera.activation<1>>

// -----

%y = "values"() : () -> !chimera.arriving<!chimera.activation<1>>
// expected-error@below {{expected a result of type '!chimera.activation<1>'}}
%x = chimera.wait %y : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<2>

// -----

%y = "values"() : () -> !chimera.activation<1>
// expected-error@below {{operand #0 must be a transfer in flight, but got '!chimera.activation<1>'}}
chimera.wait %y : !chimera.activation<1>

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected a bucket below 2, got 2}}
%r = chimera.all_reduce_start stage 0 bucket 2 of 2 width 1 workers [0] keys [0] (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>

// -----

%n = "values"() : () -> !chimera.squared_norm<8>
// expected-error@below {{expected squared norms in one bucket, got 2}}
%r = chimera.all_reduce_start stage 0 bucket 0 of 2 width 1 workers [0] keys [0] (%n) :
    (!chimera.squared_norm<8>) -> !chimera.arriving<!chimera.squared_norm<8>>

// -----

%n = "values"() : () -> !chimera.squared_norm<8>
// expected-error@below {{expected the squared norms of 2 stages of each pipeline, got 3}}
%r = chimera.all_reduce_start stage 1 width 1 workers [0, 1, 2] keys [0, 0, 1] (%n) :
    (!chimera.squared_norm<8>) -> !chimera.arriving<!chimera.squared_norm<8>>

// -----

%e = "values"() : () -> !chimera.loss<1>
// expected-error@below {{expected losses in one bucket, got 2}}
%r = chimera.all_reduce_start stage 0 bucket 0 of 2 width 1 workers [0] keys [0] (%e) :
    (!chimera.loss<1>) -> !chimera.arriving<!chimera.loss<1>>

// -----

%g = "values"() : () -> !chimera.weight_gradient<8>
// expected-error@below {{expected at least two pieces, got 1}}
%b = chimera.split pipeline 0 stage 0 (%g) : (!chimera.weight_gradient<8>) -> !chimera.weight_gradient<8>

// -----

%g = "values"() : () -> !chimera.weight_gradient<8>
// expected-error@below {{expected pieces with a sum of 8 bytes, got 7}}
%b:2 = chimera.split pipeline 0 stage 0 (%g) : (!chimera.weight_gradient<8>) ->
    (!chimera.weight_gradient<5>, !chimera.weight_gradient<2>)

// -----

%g = "values"() : () -> !chimera.weight_gradient<8>
// expected-error@below {{expected pieces with a sum of 8 bytes, got more}}
%b:2 = chimera.split pipeline 0 stage 0 (%g) : (!chimera.weight_gradient<8>) ->
    (!chimera.weight_gradient<5>, !chimera.weight_gradient<4>)

// -----

%g = "values"() : () -> !chimera.weight_gradient<8>
// expected-error@below {{expected at least two pieces, got 1}}
%w = chimera.join pipeline 0 stage 0 (%g) : (!chimera.weight_gradient<8>) -> !chimera.weight_gradient<8>

// -----

%g = "values"() : () -> !chimera.weight_gradient<8>
// expected-error@below {{expected pieces with a sum of 17 bytes, got 16}}
%w = chimera.join pipeline 0 stage 0 (%g, %g) :
    (!chimera.weight_gradient<8>, !chimera.weight_gradient<8>) -> !chimera.weight_gradient<17>

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected tied contributions in pairs of one key, got keys 0 and 1}}
%r = chimera.all_reduce_start stage 0 tied 1 width 1 workers [0, 1] keys [0, 1] (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>

// -----

%g = "values"() : () -> !chimera.weight_gradient<1>
// expected-error@below {{expected an even number of contributions, of both stages in turn, got 3}}
%r = chimera.all_reduce_start stage 0 tied 1 width 1 workers [0, 1, 1] keys [0, 0, 1] (%g) :
    (!chimera.weight_gradient<1>) -> !chimera.arriving<!chimera.weight_gradient<1>>
