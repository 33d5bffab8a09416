// A machine with nodes has times of messages within a node and between nodes.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=costs=stages -o /dev/null | FileCheck %s --check-prefix=GRID

// Two nodes have two devices each. P0 and P1 are on one, P2 and P3 on the
// other. A step has eight actions of 1 ms. In each direction there is one
// message of 5 ms between the nodes, and one of 1 ms within each node, which
// first occupies its sender for 0.525 ms.
// CHECK: pipeline four
// CHECK: p2p 5 ms
// CHECK-NEXT: devices of a node 2
// CHECK-NEXT: p2p within it 1 ms
// CHECK-NEXT: send, occupies its worker 1000 ns
// CHECK-NEXT: and for bytes 524288 for each 1048576 bytes
// CHECK: makespan 24.1 ms
// GRID: p2p 5 ms, p2p within a node 1 ms, send 1000 ns and 524.3 us for each 1048576 bytes
chimera.machine @nodes devices(8) memory(1 GiB) speed(1) link <latency = 5 ms>
    all_reduce <latency = 100 us> node_devices(2)
    node_link <latency = 1 ms, send_bandwidth = "2 GB/s", send = 1 us>
chimera.pipeline @four on @nodes stages(4) micro_batches(1) schedule("gpipe") {
  chimera.stage 0 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
  chimera.stage 1 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
  chimera.stage 2 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
  chimera.stage 3 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
}

// Each node has both workers of a copy, so all-reduces are between nodes. A
// pipeline with a link of its own uses this link for all messages.
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

// Each copy has one worker, and both copies are on one node. So the all-reduce
// uses the link within the node: 2 messages of 1.001 ms for a few bytes.
// CHECK: pipeline alone
// CHECK: all-reduce of the gradient, by stage 2.002 ms
chimera.pipeline @alone on @nodes stages(1) micro_batches(1) schedule("gpipe")
    data_parallel(2) {
  chimera.stage 0 cost <forward = 1000000, backward = 1000000> bytes <weights = 64, optimizer = 0, stash = 8, boundary = 1048576>
}
