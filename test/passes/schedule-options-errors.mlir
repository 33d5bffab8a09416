// Settings that a scheme refuses, and the possible ones.
//
// RUN: chimera-opt %s --chimera-partition --split-input-file --verify-diagnostics

// An unknown scheme.
// expected-error@below {{expected one of the schedules chimera, gpipe, 1f1b, interleaved-1f1b, zb-v, gems, pipedream, pipedream-2bw, got "typhon"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("typhon")

// -----

// Another name of an existing scheme.
// expected-error@below {{pipedream-2bw, got "dapple": did you mean 1f1b?}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("dapple")

// -----

// expected-error@below {{pipedream-2bw, got "ScheduleInterleaved1F1B": did you mean interleaved-1f1b?}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("ScheduleInterleaved1F1B")

// -----

// A typing error.
// expected-error@below {{pipedream-2bw, got "chimaera": did you mean chimera?}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimaera")

// -----

// A scheme from the literature that is not supported yet. The message does not
// suggest a similar name.
// expected-error@below {{expected one of the schedules chimera, gpipe, 1f1b, interleaved-1f1b, zb-v, gems, pipedream, pipedream-2bw, got "zb-h1", which is not supported yet: give its placement and its order (chimera.direction, chimera.order)}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("zb-h1")

// -----

// No name is suggested if the given one is not similar to any.
// expected-error@below {{expected one of the schedules chimera, gpipe, 1f1b, interleaved-1f1b, zb-v, gems, pipedream, pipedream-2bw, got "zb-x9"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("zb-x9")

// -----

// An option that this scheme does not have.
// expected-error@below {{schedule "gpipe" (any D >= 1, S = D, any N >= 1): expected no options, got "pipelines"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("gpipe", {pipelines = 4})

// -----

// expected-error@below {{schedule "pipedream" (any D >= 1, S = D, any N >= D): expected no options, got "concatenation"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("pipedream", {concatenation = "direct"})

// -----

// An option that no scheme has.
// expected-error@below {{schedule "chimera" (any D >= 2, S = D, any N >= 1): expected one of the options pipelines, concatenation, got "speed"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {speed = "warp"})

// -----

// A value that the option does not have.
// expected-error@below {{expected concatenation to be direct, eager, doubling, fine-tuned-doubling or halving, or best, got "tripling"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {concatenation = "tripling"})

// -----

// expected-error@below {{expected pipelines to be 2f for an f that divides half of the stages, or best, got "two"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {pipelines = "two"})

// -----

// expected-error@below {{expected 2 or 4 pipelines for 4 workers, got 0}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {pipelines = 0})

// -----

// expected-error@below {{expected 2 pipelines for an odd number of workers (3), got -2}}
chimera.pipeline @p stages(3) micro_batches(4) schedule("chimera", {pipelines = -2})

// -----

// A number of pipelines that does not divide the stages.
// expected-error@below {{schedule "chimera" (any D >= 2, S = D, any N >= 1): expected 2, 4 or 8 pipelines for 8 workers, got 6}}
chimera.pipeline @p stages(8) micro_batches(8) schedule("chimera", {pipelines = 6})

// -----

// expected-error@below {{expected 2 pipelines for an odd number of workers (5), got 4}}
chimera.pipeline @p stages(5) micro_batches(8) schedule("chimera", {pipelines = 4})

// -----

// The option is neither a number nor a string.
// expected-error@below {{expected an integer or a string for the schedule's option "pipelines", got [4]}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {pipelines = [4]})

// -----

// Too few stages or micro-batches.
// expected-error@below {{schedule "chimera" (any D >= 2, S = D, any N >= 1): expected at least 2 workers for two directions, got 1: use gpipe or 1f1b}}
chimera.pipeline @p stages(1) micro_batches(4) schedule("chimera")

// -----

// expected-error@below {{schedule "gems" (any D >= 2, S = D, any N >= 1): expected at least 2 workers for two directions, got 1}}
chimera.pipeline @p stages(1) micro_batches(4) schedule("gems")

// -----

// expected-error@below {{schedule "pipedream" (any D >= 1, S = D, any N >= D): expected at least as many micro-batches a step as workers (4), got 3}}
chimera.pipeline @p stages(4) micro_batches(3) schedule("pipedream")

// -----

// expected-error@below {{schedule "pipedream-2bw" (any D >= 1, S = D, any N >= D): expected at least as many micro-batches a step as workers (4), got 3}}
chimera.pipeline @p stages(4) micro_batches(3) schedule("pipedream-2bw")
