// A title has words in the form of a description: in quotes if the parser does
// not accept them without.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline -o /dev/null | FileCheck %s
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report -o /dev/null | FileCheck %s
// CHECK: fine: chimera {concatenation = "fine-tuned-doubling", pipelines = 4}, 4 stages, 16 micro-batches{{$}}
chimera.pipeline @fine stages(4) micro_batches(16) schedule(chimera, {concatenation = "fine-tuned-doubling", pipelines = 4})
// CHECK: bare: chimera {concatenation = doubling}, 2 stages, 4 micro-batches{{$}}
chimera.pipeline @bare stages(2) micro_batches(4) schedule(chimera, {concatenation = doubling, pipelines = 2})
// CHECK: direct: chimera, 2 stages, 4 micro-batches, data_parallel(2), split_backward, recompute(all fused), all_reduce(eager_opt), bucket_bytes(64), receive_window(2){{$}}
chimera.pipeline @direct stages(2) micro_batches(4) schedule(chimera, {concatenation = direct})
    receive_window(2) bucket_bytes(64) all_reduce(eager_opt) recompute(all fused) split_backward data_parallel(2)
// If the pipeline has the name of its schedule, the title has the name once.
// CHECK: {{^}}gpipe, 2 stages, 4 micro-batches{{$}}
chimera.pipeline @gpipe stages(2) micro_batches(4) schedule("gpipe")
