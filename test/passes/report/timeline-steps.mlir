// Timelines of actions over two micro-batches, of parts, recomputes and two
// steps.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=1 -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 format=chrome-trace" -o /dev/null | FileCheck %s --check-prefix=TRACE
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=1 format=svg" -o /dev/null | FileCheck %s --check-prefix=SVG

// Two steps of three micro-batches.
// CHECK-LABEL: endless: pipedream-2bw, 2 stages, 3 micro-batches
// CHECK-NEXT: t 0 1 2
// CHECK-NEXT: P0 F0 F1 . . B0 = F2 B1 = F3 B2 = F4 B3 = F5 B4 = . B5 ={{$}}
// CHECK-NEXT: P1 . F0 B0 = F1 B1 = F2 B2 = F3 B3 = F4 B4 = F5 B5 = . .{{$}}
// CHECK-NEXT: makespan 21 (forward 1, backward 2, p2p 0)
// CHECK-NEXT: bubble
// CHECK-NEXT: peak activations per worker: 2 1
// CHECK-NEXT: 2 steps, which overlap; in the steady state one takes 9, bubble 0.0 %
// TRACE: "name":"forward 3",{{.*}}"args":{"worker":0,"kind":"forward","pipeline":0,"stage":0,"micro_batch":3,"step":1}
// SVG: 2 steps, which overlap; in the steady</text>
// SVG-NEXT: >state one takes 9, bubble 0.0 %<
// SVG: >repeated in each step<
// SVG: <rect class="body"
chimera.pipeline @endless stages(2) micro_batches(3) schedule("pipedream-2bw")

// CHECK-LABEL: pairs: chimera {concatenation = doubling}, 2 stages, 12 micro-batches, recompute(all fused)
// CHECK: P0 F0-1 ={{.*}} R0 B0 =
// CHECK-NEXT: P1 f2-3 =
// CHECK: makespan 48 (forward 1, backward 2, recompute 1, p2p 0)
// CHECK-NOT: steps
// TRACE: "name":"forward 0-1",{{.*}}"stage":0,"micro_batch":0,"micro_batches":2}
// TRACE: "name":"recompute 0",{{.*}}"args":{"worker":0,"kind":"recompute","pipeline":0,"stage":0,"micro_batch":0}
// SVG: >recompute, up<
// SVG: <title>forward of micro-batches 0 to 1, stage 0, pipeline 0 (down), P0, time 0 to 2</title>
chimera.pipeline @pairs stages(2) micro_batches(12) schedule("chimera", {concatenation = "doubling"}) recompute(all fused)

// CHECK-LABEL: halves: chimera {concatenation = halving}, 2 stages, 2 micro-batches
// CHECK: P0 F0 f1 b1a B0a b1b B0b{{$}}
// TRACE: "name":"backward 1b",{{.*}}"micro_batch":1,"part":1,"parts":2}
// SVG: <title>backward of part 1 of 2 of micro-batch 1, stage 1, pipeline 1 (up), P0,
chimera.pipeline @halves stages(2) micro_batches(2) schedule("chimera", {concatenation = "halving"})
