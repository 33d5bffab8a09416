// Recomputation also saves memory if steps overlap: a worker holds one stash,
// and not one for each micro-batch in flight.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s --check-prefix=ALLOCATED

// CHECK-LABEL: pipeline keep
// CHECK: makespan 33{{$}}
// CHECK: peak activations per worker 4 3 2 1{{$}}
// CHECK: peak bytes per worker 26112 B, 19712 B, 13248 B, 6720 B{{$}}
// CHECK-LABEL: pipeline early
// CHECK: makespan 39{{$}}
// CHECK: peak activations per worker 1 1 1 1{{$}}
// CHECK: peak bytes per worker 6912 B, 7040 B, 6912 B, 6720 B{{$}}
// CHECK-LABEL: pipeline fused
// CHECK: makespan 44{{$}}
// CHECK: peak activations per worker 1 1 1 1{{$}}

// ALLOCATED-LABEL: chimera.pipeline @keep
// ALLOCATED: chimera.worker 0 {{.*}} peak 26240 at
// ALLOCATED: chimera.worker 1 {{.*}} peak 19904 at
// ALLOCATED: chimera.worker 2 {{.*}} peak 13440 at
// ALLOCATED: chimera.worker 3 {{.*}} peak 6880 at
// ALLOCATED-LABEL: chimera.pipeline @early
// ALLOCATED: chimera.worker 0 {{.*}} peak 7104 at
// ALLOCATED: chimera.worker 1 {{.*}} peak 7232 at
// ALLOCATED: chimera.worker 2 {{.*}} peak 7104 at
// ALLOCATED: chimera.worker 3 {{.*}} peak 6880 at
// ALLOCATED-LABEL: chimera.pipeline @fused
// ALLOCATED: chimera.worker 0 {{.*}} peak 7104 at
// ALLOCATED: chimera.worker 1 {{.*}} peak 7168 at
chimera.pipeline @keep stages(4) micro_batches(4) schedule("pipedream") {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 3 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
}
chimera.pipeline @early stages(4) micro_batches(4) schedule("pipedream") recompute(all) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 3 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
}
chimera.pipeline @fused stages(4) micro_batches(4) schedule("pipedream") recompute(all fused) {
  chimera.stage 0 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 1 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 2 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
  chimera.stage 3 cost <forward = 1, backward = 2>
      bytes <weights = 64, optimizer = 128, stash = 6400, boundary = 64>
}
