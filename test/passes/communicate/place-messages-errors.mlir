// RUN: chimera-opt %s --chimera-place-messages --verify-diagnostics --split-input-file -o /dev/null

// expected-error@below {{expected workers: run chimera-project first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// A message is used before two others that were sent earlier.
chimera.pipeline @p stages(2) micro_batches(3) schedule("gpipe") receive_window(2) {
  chimera.worker 0 holds [] { chimera.yield }
  chimera.worker 1 holds [] {
    // expected-note@below {{such as this one}}
    %0 = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 0 : !chimera.arriving<!chimera.activation<8>>
    %1 = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1 : !chimera.arriving<!chimera.activation<8>>
    // expected-error@below {{expected a receive_window of at least 3 for it, got 2: it is used before 2 messages that worker 0 sends earlier}}
    %2 = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 2 : !chimera.arriving<!chimera.activation<8>>
    %x2 = chimera.wait %2 : !chimera.arriving<!chimera.activation<8>> -> !chimera.activation<8>
    %x0 = chimera.wait %0 : !chimera.arriving<!chimera.activation<8>> -> !chimera.activation<8>
    %x1 = chimera.wait %1 : !chimera.arriving<!chimera.activation<8>> -> !chimera.activation<8>
    chimera.yield
  }
}

// -----

// If no window is given, a large enough one is chosen.
chimera.pipeline @p stages(2) micro_batches(3) schedule("gpipe") {
  chimera.worker 0 holds [] {
    %0 = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 : !chimera.arriving<!chimera.gradient<8>>
    %1 = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 1 : !chimera.arriving<!chimera.gradient<8>>
    %x1 = chimera.wait %1 : !chimera.arriving<!chimera.gradient<8>> -> !chimera.gradient<8>
    %x0 = chimera.wait %0 : !chimera.arriving<!chimera.gradient<8>> -> !chimera.gradient<8>
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(2) micro_batches(3) schedule("gpipe") {
  chimera.worker 0 holds [] {
    // expected-error@below {{expected exactly one wait for this receive in its section}}
    %0 = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 : !chimera.arriving<!chimera.gradient<8>>
    chimera.yield
  }
}

// -----

chimera.pipeline @p stages(2) micro_batches(3) schedule("gpipe") {
  chimera.worker 0 holds [] {
    // expected-error@below {{expected no group before chimera-place-messages, which makes groups}}
    %t = chimera.group {
      %0 = chimera.post_receive from 1 pipeline 0 stage 1 micro_batch 0 : !chimera.arriving<!chimera.gradient<8>>
      chimera.yield %0 : !chimera.arriving<!chimera.gradient<8>>
    } : !chimera.arriving<!chimera.gradient<8>>
    %x = chimera.wait %t : !chimera.arriving<!chimera.gradient<8>> -> !chimera.gradient<8>
    chimera.yield
  }
}
