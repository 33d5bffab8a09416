// If a pipeline is on a machine, its costs are in nanoseconds: by the machine's
// speed, its links and its memory bandwidth.
//
// RUN: split-file %s %t
// RUN: chimera-opt %t/model.mlir --chimera-partition | FileCheck %s
// The speed is 2 FLOP per ns. An update reads the gradient, and reads and
// writes weights and state: 28 bytes for each parameter, at 7 bytes per ns.
// CHECK: @flops {{.*}} time_unit(flop)
// CHECK: chimera.stage 0 layers(0, 2) cost <forward = [[#F:]], backward = [[#B:]], input_gradient = [[#I:]], weight_gradient = [[#G:]]> bytes <weights = [[#W:]],
// CHECK: @timed of @m on @machine {{.*}} time_unit(ns)
// CHECK: chimera.stage 0 layers(0, 2) cost <forward = [[#div(F,2)]], backward = [[#div(B,2)]], input_gradient = [[#div(I,2)]], weight_gradient = [[#div(G,2)]], update = [[#W]]> bytes <weights = [[#W]],

// RUN: chimera-opt %t/model.mlir --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=REPORT
// REPORT: pipeline timed
// REPORT: unit of time ns
// REPORT: p2p 40 us
// REPORT: memory caps per worker 15 MiB, 15 MiB
// The times of all-reduces are used, and not those of the link.
// REPORT: all-reduce of the gradient, by stage 6 ms, 6 ms

// Recursive doubling takes log2(4) exchanges of 3 ms, and once the times of a
// send and a receive.
// RUN: chimera-opt %t/doubling.mlir --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=DOUBLING
// DOUBLING: all-reduce of the gradient, by stage 7 ms, 7 ms

// The pipeline's own times take precedence over the machine's.
// RUN: chimera-opt %t/own.mlir --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=OWN
// OWN: unit of time ns
// OWN: p2p 5 ns
// OWN: memory caps per worker 5000 B, 5000 B

// A pipeline that does not fit into the machine's memory is refused.
// RUN: not chimera-opt %t/small.mlir --chimera-to-allocated 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: error: {{.*}}(memory_cap)

//--- model.mlir
chimera.machine @machine devices(4) memory(16 MiB) speed("2 GFLOP/s") reserved(1 MiB) memory_bandwidth("7 GB/s")
    link <latency = 40 us> all_reduce <latency = 3 ms>
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @flops of @m stages(2) micro_batches(2) schedule("1f1b")
chimera.pipeline @timed of @m on @machine stages(2) micro_batches(2) schedule("1f1b") data_parallel(2)

//--- doubling.mlir
chimera.machine @machine devices(8) memory(16 MiB) speed("2 GFLOP/s")
    all_reduce <latency = 3 ms, send = 0.4 ms, receive = 0.6 ms> all_reduce_algorithm(doubling)
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @timed of @m on @machine stages(2) micro_batches(2) schedule("1f1b") data_parallel(4)

//--- own.mlir
chimera.machine @machine devices(2) memory(16 MiB) speed("2 GFLOP/s") link <latency = 40 us>
chimera.pipeline @p on @machine stages(2) micro_batches(2) schedule("1f1b") link <latency = 5> memory_cap(5000) {
  chimera.stage 0 cost <forward = 1, backward = 2> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2> bytes <weights = 64, optimizer = 128, stash = 64, boundary = 64>
}

//--- small.mlir
chimera.machine @machine devices(2) memory(20 KiB) speed("2 GFLOP/s")
chimera.model @m gpt2 layers(2) heads(2) width(16) context(8) vocabulary(32)
chimera.pipeline @timed of @m on @machine stages(2) micro_batches(2) schedule("1f1b")
