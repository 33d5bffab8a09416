// The cost and the savings of recomputation on 4 stages. If a backward takes
// two forwards, a step takes 16. With early recomputes it takes 19, and with
// fused ones 22, because these cannot fill bubbles. A worker holds one stash,
// and not three or four.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s --check-prefix=ALLOCATED
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=forward=1 -o /dev/null | FileCheck %s --check-prefix=TIMELINE

// CHECK-LABEL: pipeline keep
// CHECK: makespan 16{{$}}
// CHECK: peak activations per worker 3 4 4 3{{$}}
// CHECK: peak bytes per worker 19712 B, 26176 B, 26176 B, 19712 B{{$}}
// CHECK-LABEL: pipeline early
// CHECK: recomputation early{{$}}
// CHECK: recompute 1{{$}}
// CHECK: makespan 19{{$}}
// CHECK-NEXT: without recomputes 16{{$}}
// CHECK: ratio over all workers 21.1 %{{$}}
// CHECK-NEXT: without recomputes 25.0 %{{$}}
// CHECK-NOT: formula
// CHECK: peak activations per worker 1 1 1 1{{$}}
// CHECK: without recomputes 3 4 4 3{{$}}
// CHECK: peak bytes per worker 6976 B, 7 KiB, 7 KiB, 6976 B{{$}}
// CHECK-NEXT: without recomputes 19712 B, 26176 B, 26176 B, 19712 B{{$}}
// CHECK-NOT: not the scheme's own
// CHECK-LABEL: pipeline fused
// CHECK: recomputation fused{{$}}
// CHECK: makespan 22{{$}}
// CHECK-NEXT: without recomputes 16{{$}}
// CHECK: ratio, by formula 27.3 %{{$}}
// CHECK: peak activations per worker 1 1 1 1{{$}}
// CHECK: note {{.*}}in the formula of the bubble, b is a recompute plus a backward

// The peaks of the program also include messages and losses.
// ALLOCATED-LABEL: chimera.pipeline @keep
// ALLOCATED: chimera.worker 0 {{.*}} peak 19920 at
// ALLOCATED: chimera.worker 1 {{.*}} peak 26368 at
// ALLOCATED-LABEL: chimera.pipeline @early
// ALLOCATED: chimera.worker 0 {{.*}} peak 7248 at
// ALLOCATED: chimera.worker 1 {{.*}} peak 7360 at
// ALLOCATED-LABEL: chimera.pipeline @fused
// ALLOCATED: chimera.worker 0 {{.*}} peak 7184 at
// ALLOCATED: chimera.worker 1 {{.*}} peak 7296 at

// TIMELINE-LABEL: early:
// TIMELINE: P0 F0 F1 . f2 b2 = f3 b3 = R0 . B0 = R1 . . . B1 =
// TIMELINE: P1 . F0 f2 F1 f3 r2 b2 = R0 B0 = r3 b3 = R1 B1 = . .
// TIMELINE: makespan 19 (forward 1, backward 2, recompute 1, p2p 0)
chimera.pipeline @keep stages(4) micro_batches(4) schedule("chimera") {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 3 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
}
chimera.pipeline @early stages(4) micro_batches(4) schedule("chimera") recompute(all) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 3 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
}
chimera.pipeline @fused stages(4) micro_batches(4) schedule("chimera") recompute(all fused) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 3 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
}
