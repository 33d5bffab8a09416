// RUN: chimera-opt %s --chimera-partition --split-input-file --verify-diagnostics

// An option that the scheme does not know.
// expected-error@below {{schedule "gpipe"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("gpipe", {pipelines = 4})

// -----

// An option that no scheme knows.
// expected-error@below {{schedule "chimera"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {speed = "warp"})

// -----

// A value that the option does not take.
// expected-error@below {{direct}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {concatenation = "tripling"})

// -----

// A number of pipelines that does not divide the stages.
// expected-error@below {{schedule "chimera"}}
chimera.pipeline @p stages(8) micro_batches(8) schedule("chimera", {pipelines = 6})

// -----

// Neither a number nor a word.
// expected-error@below {{expected an integer or a string for the schedule's option "pipelines", got 4.0}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {pipelines = 4.0})
