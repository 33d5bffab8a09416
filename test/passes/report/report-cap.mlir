// A pipeline that exceeds its memory cap is reported beside the others. Then it
// is refused: one error per pipeline, and a nonzero status.
//
// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-report=forward=2 -o /dev/null 2> %t.err | FileCheck %s --check-prefix=REPORT
// RUN: grep -c error: %t.err | FileCheck %s --check-prefix=COUNT
// RUN: FileCheck %s --check-prefix=REFUSED < %t.err
// COUNT: {{^}}2{{$}}
// REFUSED: report-cap.mlir:[[# @LINE + 15]]:1: error: 'chimera.pipeline' op expected workers of at most 400 bytes (memory_cap), got at least 832 bytes on worker 0 at backward of stage 0, micro-batch 0, and 1 other worker above the cap
// REFUSED: report-cap.mlir:[[# @LINE + 29]]:1: error: 'chimera.pipeline' op expected workers of at most 300 bytes (memory_cap), got at least

// RUN: not chimera-opt %s --chimera-to-scheduled --chimera-print-timeline=output=%t.txt -o /dev/null 2> %t.err
// RUN: FileCheck %s --check-prefix=REFUSED < %t.err
// RUN: FileCheck %s --check-prefix=GRID < %t.txt
// GRID: flood: gpipe,
// GRID: fits: 1f1b,
// GRID: no_cap: gpipe,
// GRID: small: chimera {concatenation = halving},

// REPORT: flood: gpipe, 2 stages, 8 micro-batches{{$}}
// REPORT: memory caps per worker 400 B, 400 B
// REPORT-NEXT: REFUSED, exceeded by at least 832 bytes on worker 0 at backward of stage 0, micro-batch 0, and 1 other worker above the cap
// REPORT: makespan 54
chimera.pipeline @flood stages(2) micro_batches(8) schedule("gpipe") memory_cap(400)
// REPORT: fits: 1f1b, 2 stages, 8 micro-batches{{$}}
// REPORT: memory caps per worker 1000 B, 1000 B
// REPORT-NOT: REFUSED
// REPORT: makespan 54
// REPORT: note memory caps apply to the arena and the stashes of a program, which may need more than the peak bytes
chimera.pipeline @fits stages(2) micro_batches(8) schedule("1f1b") memory_cap(1000)
// REPORT: no_cap: gpipe, 2 stages, 8 micro-batches, data_parallel(3), split_backward, recompute([1] fused), all_reduce(eager), bucket_bytes(64), receive_window(2){{$}}
// REPORT-NOT: REFUSED
// REPORT: makespan
// REPORT-NOT: memory caps apply
chimera.pipeline @no_cap stages(2) micro_batches(8) schedule("gpipe") data_parallel(3) split_backward
    recompute([1] fused) all_reduce(eager) bucket_bytes(64) receive_window(2)
// REPORT: small: chimera {concatenation = halving}, 2 stages, 4 micro-batches, recompute(all){{$}}
// REPORT: REFUSED
chimera.pipeline @small stages(2) micro_batches(4) schedule("chimera", {concatenation = "halving"})
    memory_cap(300) recompute(all)
