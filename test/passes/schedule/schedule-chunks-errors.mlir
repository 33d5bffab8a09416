// Numbers of stages, workers and micro-batches that schedules refuse.
//
// RUN: chimera-opt %s --chimera-to-scheduled --split-input-file --verify-diagnostics

// There are more workers than stages.
// expected-error@below {{expected at most as many workers as stages (4), got 5}}
chimera.pipeline @a stages(4) micro_batches(4) schedule("interleaved-1f1b") workers(5)

// -----

// The scheme needs one stage per worker.
// expected-error@below {{schedule "1f1b" (any D >= 1, S = D, any N >= 1): expected as many stages as workers (2), got 4}}
chimera.pipeline @a stages(4) micro_batches(4) schedule("1f1b") workers(2)

// -----

// The stages cannot be divided equally among the workers.
// expected-error@below {{expected a number of stages that is a multiple of the 4 workers, got 6}}
chimera.pipeline @a stages(6) micro_batches(4) schedule("interleaved-1f1b") workers(4)

// -----

// The micro-batches cannot be divided into equal groups.
// expected-error@below {{expected micro-batches that divide into 2 equal groups (one for every 4), got 9: use 8 or 10}}
chimera.pipeline @a stages(8) micro_batches(9) schedule("interleaved-1f1b") workers(4)

// -----

// zb-v needs two stages per worker.
// expected-error@below {{expected two stages for each of the 8 workers, got 8 stages}}
chimera.pipeline @a stages(8) micro_batches(8) schedule("zb-v")
