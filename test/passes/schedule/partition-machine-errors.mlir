// Pipelines that need more than their machine has.
//
// RUN: chimera-opt %s --chimera-partition --split-input-file --verify-diagnostics

chimera.machine @machine devices(4) memory(16 GiB) speed("2 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
// expected-error@below {{expected at most the 4 devices of @machine, got 6: 2 workers, data_parallel(3)}}
chimera.pipeline @p of @m on @machine stages(2) micro_batches(2) schedule("1f1b") data_parallel(3)

// -----

// A step would take decades.
chimera.machine @machine devices(4) memory(16 GiB) speed(1)
chimera.model @m gpt2 layers(24) heads(16) width(1024) context(1024) vocabulary(50257)
// expected-error@below {{expected a model whose operations, bytes and nanoseconds for a micro-batch are below 2^60}}
chimera.pipeline @p of @m on @machine stages(2) micro_batches(2) schedule("1f1b")

// -----

chimera.machine @machine devices(4) memory(16 GiB) speed("2 GFLOP/s")
// expected-error@below {{expected a model, or stages with costs and time_unit(ns), on a machine}}
chimera.pipeline @p on @machine stages(2) micro_batches(2) schedule("1f1b")

// -----

chimera.machine @machine devices(4) memory(16 GiB) speed("2 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
// expected-error@below {{expected time_unit(ns), the unit of a machine's times, got flop}}
chimera.pipeline @p of @m on @machine stages(2) micro_batches(2) schedule("1f1b") time_unit(flop)
