// The parser accepts many forms of numbers and words. The printer uses one
// form.
//
// RUN: chimera-opt %s | FileCheck %s
// RUN: chimera-opt %s | chimera-opt | FileCheck %s

// CHECK: chimera.pipeline @numbers stages(4) micro_batches(200) schedule("gpipe")
// CHECK-SAME: memory_cap(40 GB) bucket_bytes(1 MiB){{$}}
// CHECK: chimera.training @numbers_too
// CHECK-SAME: learning_rate(0.000000e+00) beta1(5.000000e-01) beta2(2.500000e-01)
// CHECK-SAME: epsilon(1.000000e-05) weight_decay(1.000000e+01) seed(-300){{$}}
chimera.pipeline @numbers stages(4) micro_batches(2e2) schedule("gpipe")
    memory_cap(40e9) bucket_bytes(1.048576e6)
chimera.training @numbers_too seed(-3E2)
    learning_rate(0) beta1(5e-1) beta2(0.25) epsilon(1e-5) weight_decay(1e+1)

// CHECK: chimera.training @small learning_rate(2.000000e-03){{$}}
chimera.training @small learning_rate(2.0e-3)

// CHECK: chimera.model @model gpt2 layers(12) heads(12) width(768) context(1024) vocabulary(50000) dropout(1.000000e-01) tied
chimera.model @model "gpt2" layers(12) heads(12) width(768) context(1024)
    vocabulary(5e4) tied dropout(1e-1)

// A word may be in quotes or not.
// CHECK: schedule("chimera", {concatenation = "halving", pipelines = 4 : i64})
chimera.pipeline @bare stages(4) micro_batches(4)
    schedule(chimera, {pipelines = 4e0, concatenation = halving})
// CHECK: schedule("chimera", {concatenation = "fine-tuned-doubling"})
chimera.pipeline @quoted stages(4) micro_batches(4)
    schedule("chimera", {"concatenation" = "fine-tuned-doubling"})
// CHECK: schedule("1f1b") all_reduce(eager) weight_type(f64)
chimera.pipeline @digits stages(4) micro_batches(4) schedule(1f1b)
    all_reduce("eager") weight_type("f64")
// CHECK: schedule("pipedream-2bw")
chimera.pipeline @dash stages(4) micro_batches(4) schedule(pipedream-2bw)

// CHECK: chimera.pipeline @fields {{.*}} link <latency = 2000, receive_per_mib = 70>
// CHECK-NEXT: chimera.stage 0 cost <forward = 3000000000, backward = 6000000000>
// CHECK-SAME: bytes <weights = 4000000000, optimizer = 8000000000, stash = 1, boundary = 1>
chimera.pipeline @fields stages(1) micro_batches(1) schedule(gpipe)
    link <receive_per_mib = 70, latency = 2e3> {
  chimera.stage 0 cost <backward = 6e9, forward = 3e9>
      bytes <weights = 4e9, optimizer = 8e9, stash = 1, boundary = 1>
}

// After the clauses, a location or the next op may follow.
chimera.pipeline @before stages(1) micro_batches(1) schedule(gpipe) loc("here")
module {
  chimera.pipeline @inside stages(1) micro_batches(1) schedule(gpipe)
}
