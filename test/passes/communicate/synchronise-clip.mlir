// The all-reduce of the norm starts after all gradients of a worker are reduced,
// also if these all-reduces start early. The updates wait for it.
//
// RUN: chimera-opt %s --chimera-to-projected --split-input-file | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-communicate=messages=stream-per-device --chimera-synchronise=messages=stream-per-device --chimera-project --split-input-file | FileCheck %s

chimera.training @t clip_norm(1.0)

// CHECK-LABEL: chimera.pipeline @lazy
// CHECK: chimera.worker 0
// CHECK: chimera.backward pipeline 0 stage 0 micro_batch 0
// CHECK-DAG: %[[R0:.*]] = chimera.all_reduce_start stage 0 width 1 workers [0, 1] keys [0, 1]
// CHECK-DAG: %[[R1:.*]] = chimera.all_reduce_start stage 1 width 1 workers [1, 0] keys [0, 1](%{{.*}}) : (!chimera.weight_gradient<64>)
// CHECK: %[[G0:.*]] = chimera.wait %[[R0]]
// CHECK: %[[N0:.*]] = chimera.squared_norm pipeline 0 stage 0(%[[G0]])
// CHECK: %[[G1:.*]] = chimera.wait %[[R1]]
// CHECK-NEXT: %[[N1:.*]] = chimera.squared_norm pipeline 1 stage 1(%[[G1]])
// CHECK-NEXT: %[[S:.*]] = chimera.all_reduce_start stage 1 width 1 workers [0, 1, 1, 0] keys [0, 0, 1, 1](%[[N0]], %[[N1]]) : (!chimera.squared_norm<8>, !chimera.squared_norm<8>) -> !chimera.arriving<!chimera.squared_norm<8>>
// CHECK-NEXT: %[[N:.*]] = chimera.wait %[[S]]
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1({{.*}}, %[[G1]], %[[N]])
// CHECK-NEXT: chimera.optimizer_step pipeline 0 stage 0({{.*}}, %[[G0]], %[[N]])
chimera.pipeline @lazy with @t stages(2) micro_batches(2) schedule("chimera")

// -----

chimera.training @t clip_norm(1.0)

// CHECK-LABEL: chimera.pipeline @eager
// CHECK: chimera.worker 0
// CHECK: chimera.squared_norm pipeline 0 stage 0
// CHECK: chimera.squared_norm pipeline 1 stage 1
// CHECK-NEXT: %[[S:.*]] = chimera.all_reduce_start stage 1 width 1 workers [0, 1, 1, 0] keys [0, 0, 1, 1]
// CHECK-NEXT: chimera.wait %[[S]]
// CHECK-NEXT: chimera.optimizer_step pipeline 1 stage 1
chimera.pipeline @eager with @t stages(2) micro_batches(2) schedule("chimera") all_reduce(eager)
