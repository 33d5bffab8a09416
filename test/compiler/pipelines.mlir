// Each named pass pipeline lowers a description to one phase and no further.
// Its output can be read again and lowered to the next phase.
//
// RUN: chimera-opt %s --chimera-to-partitioned | FileCheck %s --check-prefix=PARTITIONED
// RUN: chimera-opt %s --chimera-to-unrolled | FileCheck %s --check-prefix=UNROLLED
// RUN: chimera-opt %s --chimera-to-scheduled | FileCheck %s --check-prefix=SCHEDULED
// RUN: chimera-opt %s --chimera-to-communicated | FileCheck %s --check-prefix=COMMUNICATED
// RUN: chimera-opt %s --chimera-to-synchronised | FileCheck %s --check-prefix=SYNCHRONISED
// RUN: chimera-opt %s --chimera-to-projected | FileCheck %s --check-prefix=PROJECTED
// RUN: chimera-opt %s --chimera-to-allocated | FileCheck %s --check-prefix=ALLOCATED
// RUN: chimera-opt %s --chimera-timeline -o /dev/null | FileCheck %s --check-prefix=TIMELINE
//
// The phases give the same output if they run one at a time, through text and
// bytecode, and if they run all at once.
// RUN: chimera-opt %s --chimera-to-allocated > %t
// RUN: chimera-opt %s --chimera-partition | chimera-opt --chimera-unroll --emit-bytecode | chimera-opt --chimera-schedule --emit-bytecode | chimera-opt --chimera-recompute --chimera-verify-scheduled | chimera-opt --chimera-communicate --emit-bytecode | chimera-opt --chimera-synchronise --chimera-verify-synchronised | chimera-opt --chimera-project --emit-bytecode | chimera-opt --chimera-place-messages | chimera-opt --chimera-allocate --chimera-verify-allocated | diff %t -

// PARTITIONED: chimera.direction 1 up
// PARTITIONED-NOT: chimera.step
// UNROLLED: chimera.forward
// UNROLLED-NOT: on 0
// SCHEDULED: chimera.forward {{.*}} slot 0 on 0
// SCHEDULED-NOT: chimera.post
// COMMUNICATED: chimera.post_send
// COMMUNICATED: chimera.all_reduce stage
// SYNCHRONISED: chimera.all_reduce_start
// SYNCHRONISED-NOT: chimera.worker
// PROJECTED-NOT: chimera.step
// PROJECTED: chimera.worker 3
// PROJECTED-NOT: chimera.buffer
// ALLOCATED: chimera.worker 3 {{.*}} peak
// ALLOCATED: chimera.buffer 0
// TIMELINE: P3 f2 . f3 F0 B0 F1 B1 b2 . b3
chimera.model @gpt gpt2 layers(4) heads(2) width(8) context(4) vocabulary(16)
chimera.pipeline @p of @gpt stages(4) micro_batches(4) schedule("chimera")
