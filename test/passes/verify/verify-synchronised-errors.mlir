// Wrong messages in a step whose all-reduces are split, made by hand.
//
// RUN: chimera-opt %s --chimera-verify-synchronised --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expected a step: run chimera-unroll first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// A right step is accepted.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<1>>
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<1>
    %x = chimera.wait %q on 1 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    chimera.wait %p on 0 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    // expected-error@below {{expected an op that names its worker}}
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 : !chimera.tokens<1>
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    // expected-error@below {{expected an op that names its worker}}
    "other"() : () -> ()
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// An action uses a value of another worker, which was not sent.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    // expected-error@below {{expected values of worker 1, got one of worker 0}}
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 1 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A post in a group uses a value of another worker, which was not sent.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    %q = chimera.post_receive from 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.arriving<!chimera.activation<1>>
    %g = chimera.group on 1 {
      // expected-error@below {{expected values of worker 1, got one of worker 0}}
      %p = chimera.post_send %y to 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.activation<1>
      chimera.yield %p : !chimera.sending
    } : !chimera.sending
    %x = chimera.wait %q on 0 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    chimera.wait %g on 1 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// A worker waits for the transfer of another worker.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<1>>
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<1>
    // expected-error@below {{expected values of worker 0, got one of worker 1}}
    %x = chimera.wait %q on 0 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    chimera.wait %p on 0 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// One transfer has no wait, and another one has two.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    // expected-error@below {{expected its transfer to be waited for once, got 0 uses}}
    %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<1>>
    // expected-error@below {{expected its transfer to be waited for once, got 2 uses}}
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<1>
    chimera.wait %p on 0 : !chimera.sending
    chimera.wait %p on 0 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The messages are sent in another order than they are received.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    // expected-note@below {{the matching receive on worker 1}}
    %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<1>>
    %r = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1 on 1 : !chimera.arriving<!chimera.activation<1>>
    // expected-error@below {{expected the matching receive to have the same type and label}}
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 1 on 0 : !chimera.activation<1>
    %u = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<1>
    %x = chimera.wait %q on 1 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    %z = chimera.wait %r on 1 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    chimera.wait %p on 0 : !chimera.sending
    chimera.wait %u on 0 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The send and its receive name different stages.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    // expected-note@below {{the matching receive on worker 1}}
    %q = chimera.post_receive from 0 pipeline 0 stage 1 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<1>>
    // expected-error@below {{expected the matching receive to have the same type and label}}
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<1>
    %x = chimera.wait %q on 1 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    chimera.wait %p on 0 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The send and its receive name different pipelines.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    // expected-note@below {{the matching receive on worker 1}}
    %q = chimera.post_receive from 0 pipeline 1 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<1>>
    // expected-error@below {{expected the matching receive to have the same type and label}}
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<1>
    %x = chimera.wait %q on 1 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    chimera.wait %p on 0 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

// The send and its receive have different types.
chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    // expected-note@below {{the matching receive on worker 1}}
    %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<2>>
    // expected-error@below {{expected the matching receive to have the same type and label}}
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<1>
    %x = chimera.wait %q on 1 : !chimera.arriving<!chimera.activation<2>> -> !chimera.activation<2>
    chimera.wait %p on 0 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    %t = chimera.load pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.tokens<1>
    %y, %s = chimera.forward pipeline 0 stage 0 micro_batch 0 on 0 (%t, %w) :
        (!chimera.tokens<1>, !chimera.weights<1>) -> (!chimera.activation<1>, !chimera.stash<1>)
    // expected-error@below {{expected a matching receive on worker 1, found none}}
    %p = chimera.post_send %y to 1 pipeline 0 stage 0 micro_batch 0 on 0 : !chimera.activation<1>
    chimera.wait %p on 0 : !chimera.sending
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}

// -----

chimera.pipeline @p stages(2) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0]
  chimera.step {
  ^bb0(%w: !chimera.weights<1>, %o: !chimera.optimizer_state<1>,
       %v: !chimera.weights<1>, %n: !chimera.optimizer_state<1>):
    // expected-error@below {{expected a matching send on worker 0, found none}}
    %q = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 on 1 : !chimera.arriving<!chimera.activation<1>>
    %x = chimera.wait %q on 1 : !chimera.arriving<!chimera.activation<1>> -> !chimera.activation<1>
    chimera.yield %w, %o, %v, %n : !chimera.weights<1>,
        !chimera.optimizer_state<1>, !chimera.weights<1>, !chimera.optimizer_state<1>
  }
}
