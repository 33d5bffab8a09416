// A user's description survives text, generic text and bytecode.
//
// RUN: chimera-opt %s | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --mlir-print-op-generic | chimera-opt | FileCheck %s
// RUN: chimera-opt %s --emit-bytecode | chimera-opt | FileCheck %s

// CHECK-LABEL: chimera.model @plain
// CHECK-SAME: gpt2 layers(4) heads(2) width(8) context(16) vocabulary(256){{$}}
chimera.model @plain gpt2 layers(4) heads(2) width(8) context(16) vocabulary(256)

// A name that is not a single word is quoted. A dropout of 0 is the default.
// CHECK-LABEL: chimera.model @odd "an odd one" layers(2147483647)
// CHECK-SAME: dropout(1.250000e-01) {note = "kept"}
chimera.model @odd "an odd one" layers(2147483647) heads(1) width(1) context(1)
    vocabulary(1) dropout(0.125) {note = "kept"}

// An exported model's package describes it.
// CHECK-LABEL: chimera.model @exported exported("a folder/of \22mine\22")
chimera.model @exported exported("a folder/of \22mine\22")

// CHECK-LABEL: chimera.model @tied
// CHECK-SAME: vocabulary(256) tied{{$}}
chimera.model @tied gpt2 layers(4) heads(2) width(8) context(16) vocabulary(256)
    tied

// CHECK-LABEL: chimera.pipeline @look
// CHECK-SAME: stages(4) micro_batches(4) schedule("chimera"){{$}}
chimera.pipeline @look stages(4) micro_batches(4) schedule("chimera")

// All clauses, in any order.
// CHECK-LABEL: chimera.pipeline @all of @plain with @slowly stages(2) micro_batches(6) schedule("1f1b")
// CHECK-SAME: micro_batch_size(8) data_parallel(3) split_backward weight_type(f64){{$}}
chimera.pipeline @all of @plain with @slowly stages(2) micro_batches(6) schedule("1f1b")
    weight_type(f64) split_backward data_parallel(3) micro_batch_size(8)
// CHECK: chimera.training @slowly learning_rate(1.000000e-02) beta1(5.000000e-01)
// CHECK-SAME: beta2(2.500000e-01) epsilon(1.000000e-03) weight_decay(0.000000e+00) seed(-7){{$}}
chimera.training @slowly weight_decay(0.0) epsilon(1.0e-3) beta2(0.25) beta1(0.5)
    learning_rate(1.0e-2) seed(-7)
// CHECK: chimera.training @plainly{{$}}
chimera.training @plainly learning_rate(1.0e-3) seed(1)
// CHECK: chimera.training @falls lr_schedule(wsd) warmup(10) min_lr(1.000000e-04) decay_steps(20) lr_steps(30){{$}}
chimera.training @falls lr_steps(30) min_lr(1e-4) warmup(10) decay_steps(20) lr_schedule(wsd)
// CHECK: chimera.training @selects no_decay("*embedding*", "head.?"){{$}}
chimera.training @selects no_decay("*embedding*", "head.?")
// CHECK: chimera.training @clipped clip_norm(1.000000e+00){{$}}
chimera.training @clipped clip_norm(1)
// CHECK: chimera.training @heavy optimizer(sgd) momentum(9.000000e-01) nesterov{{$}}
chimera.training @heavy optimizer(sgd) nesterov momentum(0.9) lr_schedule(constant) warmup(0)
// CHECK: chimera.training @hidden optimizer(muon) momentum(9.375000e-01) nesterov no_muon("*router*"){{$}}
chimera.training @hidden no_muon("*router*") nesterov optimizer(muon) momentum(0.9375)

// CHECK-LABEL: chimera.pipeline @narrow
// CHECK-SAME: schedule("gpipe") weight_type(bf16){{$}}
chimera.pipeline @narrow stages(1) micro_batches(1) schedule("gpipe")
    weight_type(bf16)

// CHECK-LABEL: chimera.pipeline @types
// CHECK-SAME: schedule("gpipe") activation_type(bf16) {
// CHECK-NEXT: bytes <weights = 9, optimizer = 12, stash = 1, boundary = 1, copy = 3, weight_stash = 2>
chimera.pipeline @types stages(1) micro_batches(1) schedule("gpipe")
    activation_type("bf16") weight_type(f32) {
  chimera.stage 0 cost <forward = 1, backward = 1>
      bytes <copy = 3, weights = 9, optimizer = 12, stash = 1, weight_stash = 2, boundary = 1>
}

// The recomputed stages: all of them, in each way to write this, or some of
// them.
// CHECK: chimera.pipeline @early stages(2) micro_batches(2) schedule("chimera") recompute(all){{$}}
chimera.pipeline @early stages(2) micro_batches(2) schedule("chimera") recompute(all)
// CHECK: chimera.pipeline @list {{.*}} recompute(all fused){{$}}
chimera.pipeline @list stages(2) micro_batches(2) schedule("chimera") recompute([0, 1] fused)
// CHECK: chimera.pipeline @some {{.*}} recompute([0, 2]){{$}}
chimera.pipeline @some stages(3) micro_batches(2) schedule("gpipe") recompute([0, 2])

// Times of messages, and the memory cap of workers.
// CHECK: chimera.pipeline @slow {{.*}} link <latency = 3, send_per_mib = 2, receive = 1> memory_cap(123456789012){{$}}
chimera.pipeline @slow stages(2) micro_batches(2) schedule("gpipe")
    memory_cap(123456789012) link <latency = 3, send = 0, send_per_mib = 2, receive = 1>
// CHECK: chimera.pipeline @times {{.*}} link <latency = 1, per_mib = 2, send = 3, send_per_mib = 4, receive = 5, receive_per_mib = 6>{{$}}
chimera.pipeline @times stages(2) micro_batches(2) schedule("gpipe")
    link <latency = 1, per_mib = 2, send = 3, send_per_mib = 4, receive = 5, receive_per_mib = 6>

// The unit of costs is any word here. The partition pass checks it.
// CHECK: chimera.pipeline @unit {{.*}} time_unit(ns) link <latency = 3>{{$}}
chimera.pipeline @unit stages(2) micro_batches(2) schedule("gpipe")
    link <latency = 3> time_unit(ns)

// When all-reduces start.
// CHECK: chimera.pipeline @eager {{.*}} all_reduce(eager){{$}}
chimera.pipeline @eager stages(2) micro_batches(2) schedule("chimera") all_reduce(eager)
// CHECK: chimera.pipeline @opt {{.*}} all_reduce(eager_opt){{$}}
chimera.pipeline @opt stages(2) micro_batches(2) schedule("chimera") all_reduce(eager_opt)
// The size of buckets.
// CHECK: chimera.pipeline @buckets {{.*}} all_reduce(eager) bucket_bytes(1 MiB){{$}}
chimera.pipeline @buckets stages(2) micro_batches(2) schedule("chimera") bucket_bytes(1048576) all_reduce(eager)

// A clause that is written out but has its default value is not printed.
// CHECK-LABEL: chimera.pipeline @defaults
// CHECK-SAME: stages(1) micro_batches(1) schedule("gpipe"){{$}}
chimera.pipeline @defaults stages(1) micro_batches(1) schedule("gpipe")
    weight_type(f32) data_parallel(1) micro_batch_size(1) all_reduce(lazy)

// CHECK-LABEL: chimera.pipeline @parts
// CHECK-SAME: attributes {note = "kept"} {
// CHECK-NEXT: chimera.stage 0 layers(0, 2) cost <forward = 31, backward = 62>
// CHECK-SAME: bytes <weights = 9216, optimizer = 18432, stash = 4096, boundary = 1024>
// CHECK-NEXT: chimera.stage 1 cost <forward = 1, backward = 3, input_gradient = 2, weight_gradient = 1, recompute = 4, update = 5>
// CHECK-NEXT: chimera.direction 0 down on [0, 1] micro_batches [0, 2, 5]
// CHECK-NEXT: chimera.direction 1 up on [1, 0] micro_batches [] {note = "kept"}
// CHECK-NEXT: chimera.direction 2 down on [0, 1] micro_batches [6, 7, 9] forwards [2, 1]{{$}}
// CHECK-NEXT: chimera.direction 3 down on [0, 1] micro_batches [10] backward_parts 2 {note = "kept"}
chimera.pipeline @parts stages(2) micro_batches(3) schedule("chimera")
    attributes {note = "kept"} {
  chimera.stage 0 layers(0, 2) cost <forward = 31, backward = 62>
      bytes <weights = 9216, optimizer = 18432, stash = 4096, boundary = 1024>
  chimera.stage 1
      cost <forward = 1, backward = 3, input_gradient = 2, weight_gradient = 1, recompute = 4, update = 5>
      bytes <weights = 1, optimizer = 1, stash = 1, boundary = 1>
  chimera.direction 0 down on [0, 1] micro_batches [0, 2, 5]
  chimera.direction 1 up on [1, 0] micro_batches [] {note = "kept"}
  chimera.direction 2 down on [0, 1] micro_batches [6, 7, 9] forwards [2, 1]
  chimera.direction 3 down on [0, 1] micro_batches [10] backward_parts 2
      {note = "kept"}
}
