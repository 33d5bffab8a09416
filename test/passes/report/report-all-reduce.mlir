// The times of all-reduces, and their part that makes the step longer.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s
// Two replicas send each other two messages, together 64 bytes.
// CHECK: all-reduce of the gradient, by stage 7 7 7 7
// CHECK-NEXT: un-overlapped at the step's end lazy = 14, eager_opt = 7, eager = 7
// With messages that take time, stage 2 has idle time, too.
// CHECK-NEXT: stages that eager_opt reduces early 2 3

// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report="costs=stages format=json" -o /dev/null | FileCheck %s --check-prefix=JSON
// JSON: "all_reduces": [
// JSON: "all_reduce_unoverlapped": {
// JSON-NEXT: "lazy": 14,

// If messages take no time, the report has no all-reduces.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-report -o /dev/null | FileCheck %s --check-prefix=FREE
// FREE: makespan
// FREE-NOT: all-reduce
chimera.pipeline @p stages(4) micro_batches(4) schedule("chimera") link <latency = 3, receive_per_mib = 16384>

// In buckets of at most 24 bytes, an all-reduce has three times as many
// messages, with the same bytes in total.
// RUN: sed 's|^chimera.*|& bucket_bytes(31)|' %s | chimera-opt --chimera-to-scheduled --chimera-report=costs=stages -o /dev/null | FileCheck %s --check-prefix=BUCKETS
// BUCKETS: all-reduce of the gradient, by stage 19 19 19 19
// BUCKETS-NEXT: in buckets 3 3 3 3
// BUCKETS-NEXT: un-overlapped at the step's end lazy = 38,
// RUN: sed 's|^chimera.*|& bucket_bytes(31)|' %s | chimera-opt --chimera-to-synchronised | FileCheck %s --check-prefix=CUT
// CUT: chimera.all_reduce_start stage {{.}} bucket 2 of 3
