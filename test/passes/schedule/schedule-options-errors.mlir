// If a scheme refuses a setting, the error lists the possible ones.
//
// RUN: chimera-opt %s --chimera-partition --split-input-file --verify-diagnostics

// An unknown scheme.
// expected-error@below {{expected one of the schedules chimera, gpipe, 1f1b, interleaved-1f1b, zb-v, gems, pipedream, pipedream-2bw, got "typhon"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("typhon")

// -----

// This is another name of 1F1B in the literature.
// expected-error@below {{pipedream-2bw, got "dapple": did you mean 1f1b?}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("dapple")

// -----

// expected-error@below {{pipedream-2bw, got "ScheduleInterleaved1F1B": did you mean interleaved-1f1b?}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("ScheduleInterleaved1F1B")

// -----

// The name has a typing error.
// expected-error@below {{pipedream-2bw, got "chimaera": did you mean chimera?}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimaera")

// -----

// This scheme of the literature is not supported yet. The message does not
// suggest a similar name.
// expected-error@below {{expected one of the schedules chimera, gpipe, 1f1b, interleaved-1f1b, zb-v, gems, pipedream, pipedream-2bw, got "zb-h1", which is not supported yet: give its placement and its order (chimera.direction, chimera.order)}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("zb-h1")

// -----

// The name is not similar to any, so the message suggests none.
// expected-error@below {{expected one of the schedules chimera, gpipe, 1f1b, interleaved-1f1b, zb-v, gems, pipedream, pipedream-2bw, got "zb-x9"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("zb-x9")

// -----

// The scheme does not have this option.
// expected-error@below {{schedule "gpipe" (any D >= 1, S = D, any N >= 1): expected no options, got "pipelines"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("gpipe", {pipelines = 4})

// -----

// expected-error@below {{schedule "pipedream" (any D >= 1, S = D, any N >= D): expected no options, got "concatenation"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("pipedream", {concatenation = "direct"})

// -----

// No scheme has this option.
// expected-error@below {{schedule "chimera" (any D >= 2, S = D, any N >= 1): expected one of the options pipelines, concatenation, got "speed"}}
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera", {speed = "warp"})

// -----

// The option does not have this value.
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

// The number of pipelines must divide the number of stages.
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

// There are too few stages or micro-batches.
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
