// A machine with nodes: times of messages within a node and between two.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=costs=stages -o /dev/null | FileCheck %s --check-prefix=GRID

// Two nodes of two devices: P0 and P1 are on one, P2 and P3 on the other. A step
// has eight actions of 1 ms. Forth and back, there is a message of 5 ms between
// nodes, and one of 1 ms within each node, which occupies its sender for 0.525 ms
// before it travels.
// CHECK: pipeline four
// CHECK: p2p 5 ms
// CHECK-NEXT: devices of a node 2
// CHECK-NEXT: p2p within it 1 ms
// CHECK-NEXT: send, occupies its worker 1000 ns
// CHECK-NEXT: and for bytes 524288 for each 1048576 bytes
// CHECK: makespan 24.1 ms
// GRID: p2p 5000000 ns, p2p within a node 1000000 ns, send 1000 ns and 524288 ns for each 1048576 bytes
chimera.machine @nodes devices(8) memory(1 GiB) speed(1) link <latency = 5 ms>
    all_reduce <latency = 100 us> node_devices(2)
    node_link <latency = 1 ms, send_bandwidth = "2 GB/s", send = 1 us>
chimera.pipeline @four on @nodes stages(4) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
  chimera.stage 1 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
  chimera.stage 2 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
  chimera.stage 3 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
}

// A node has the two workers of a copy, so all-reduces are between nodes. In a
// pipeline with a link of its own, that link is used everywhere.
// CHECK: pipeline copies
// CHECK: p2p 7 ns
// CHECK-NEXT: devices of a node 2
// CHECK-NEXT: p2p within it 7 ns
// CHECK: all-reduce of the gradient, by stage 200 us, 200 us
chimera.pipeline @copies on @nodes stages(2) micro_batches(1) schedule("gpipe")
    data_parallel(2) link <latency = 7> {
  chimera.stage 0 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
  chimera.stage 1 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
}

// One worker per copy: both copies are on one node. Its all-reduces use the node's
// link: 2 messages of 1.001 ms for a few bytes.
// CHECK: pipeline alone
// CHECK: all-reduce of the gradient, by stage 2.002 ms
chimera.pipeline @alone on @nodes stages(1) micro_batches(1) schedule("gpipe")
    data_parallel(2) {
  chimera.stage 0 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
}
