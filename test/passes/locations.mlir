// An op that a user writes keeps its location. An op that a pass makes has a
// name and the location of its stage. If a pass also made the stage, it has the
// location of the pipeline.
// RUN: chimera-opt %s --chimera-to-allocated --mlir-print-debuginfo --mlir-print-local-scope -o %t
// RUN: FileCheck %s --input-file %t

// CHECK: chimera.stage 0 {{.*}} loc("{{.*}}locations.mlir":[[@LINE+15]]:3)
// CHECK: chimera.stage 1 {{.*}} loc("{{.*}}locations.mlir":[[@LINE+17]]:3)
// CHECK: chimera.worker 0
// CHECK: chimera.load pipeline 0 stage 0 micro_batch 1 {{.*}} loc("micro_batch 1"("pipeline 0 stage 0"("{{.*}}locations.mlir":[[@LINE+12]]:3)))
// CHECK: chimera.forward pipeline 0 stage 0 micro_batch 1 {{.*}} loc("micro_batch 1"("pipeline 0 stage 0"("{{.*}}locations.mlir":[[@LINE+11]]:3)))
// CHECK: chimera.post_send {{.*}} pipeline 0 stage 0 micro_batch 1 {{.*}} loc("micro_batch 1"("pipeline 0 stage 0"("{{.*}}locations.mlir":[[@LINE+10]]:3)))
// CHECK: chimera.all_reduce_start stage 0 {{.*}} loc("stage 0"("{{.*}}locations.mlir":[[@LINE+9]]:3))
// CHECK: chimera.optimizer_step pipeline 0 stage 0 {{.*}} loc("pipeline 0 stage 0"("{{.*}}locations.mlir":[[@LINE+8]]:3))
// CHECK: chimera.worker 1
// CHECK: chimera.recompute pipeline 0 stage 1 micro_batch 0 {{.*}} loc("micro_batch 0"("pipeline 0 stage 1"("{{.*}}locations.mlir":[[@LINE+9]]:3)))
// CHECK: chimera.backward pipeline 0 stage 1 micro_batch 0 {{.*}} loc("micro_batch 0"("pipeline 0 stage 1"("{{.*}}locations.mlir":[[@LINE+8]]:3)))
// CHECK: chimera.pipeline @made
// CHECK: chimera.forward pipeline 0 stage 1 micro_batch 0 {{.*}} loc("micro_batch 0"("pipeline 0 stage 1"("{{.*}}locations.mlir":[[@LINE+9]]:1)))
chimera.pipeline @given stages(2) micro_batches(2) schedule("gpipe") data_parallel(2)
    recompute([1] fused) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <weights = 8, optimizer = 8, stash = 8, boundary = 8>

  chimera.stage 1 cost <forward = 1, backward = 1>
      bytes <weights = 8, optimizer = 8, stash = 8, boundary = 8>
}
chimera.pipeline @made stages(2) micro_batches(2) schedule("gpipe")

// An op of a hand-written step keeps its location through all later phases. The
// ops that are made for it have the same location.
// RUN: chimera-opt %s --chimera-to-scheduled -o %t.scheduled
// RUN: chimera-opt %t.scheduled --chimera-communicate --chimera-synchronise --chimera-project --chimera-place-messages --chimera-allocate --mlir-print-debuginfo --mlir-print-local-scope -o %t
// RUN: grep -n 'chimera.forward pipeline 0 stage 0 micro_batch 1' %t.scheduled | head -1 | sed 's/:.*//; s/.*/scheduled":&:/' > %t.line
// RUN: grep 'post_send .*pipeline 0 stage 0 micro_batch 1 ' %t | head -1 | grep -F -f %t.line
