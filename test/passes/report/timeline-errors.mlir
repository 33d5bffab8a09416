// RUN: chimera-opt %s --chimera-print-timeline --verify-diagnostics --split-input-file --allow-unregistered-dialect -o /dev/null

// expected-error@below {{expected 1 stages: run chimera-partition first (--chimera-to-scheduled does), or give all}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe")

// -----

// expected-error@below {{expected a scheduled step: run chimera-schedule first}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
}

// -----

// expected-error@below {{expected a valid schedule: forward of stage 0, micro-batch 0 is missing}}
// expected-error@below {{expected a valid schedule: backward of stage 0, micro-batch 0 is missing}}
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step { chimera.yield }
}

// -----

// An action names a worker that the pipeline does not have.
chimera.pipeline @p stages(1) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0] micro_batches [0]
  chimera.step {
    %s, %y, %w = "values"() : () -> (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>)
    // expected-error@below {{expected a worker below 1, got 9}}
    %r = chimera.input_gradient pipeline 0 stage 0 micro_batch 0 on 9 (%s, %y, %w) :
        (!chimera.stash<1>, !chimera.gradient<1>, !chimera.weights<1>) -> !chimera.weight_stash<1>
    chimera.yield
  }
}
