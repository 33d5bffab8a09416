// Steps overlap. Each command changes the output of allocate in one place.
//
// RUN: chimera-opt %s --chimera-to-allocated -o %t
// RUN: chimera-opt %t --chimera-verify-allocated -o /dev/null
chimera.pipeline @p stages(3) micro_batches(3) schedule("pipedream-2bw")

// A backward reads another version than its forward.
// RUN: sed '/worker 0 /,/worker 1 /{/} step {/,/epilogue {/{/backward .* micro_batch 1 /s/%%arg0,/%%arg1,/}}' %t | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=NEWER
// NEWER: 'chimera.backward' op expected it to read version 0 of the weights of stage 0

// The two stashes in flight change places.
// RUN: sed '/worker 0 /,/worker 1 /{/} step {/,/epilogue {/s/%%stash_1, %%stash_4/%%stash_4, %%stash_1/}' %t | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=EXCHANGED
// EXCHANGED: 'chimera.yield' op expected value 3 to be the stash in flight, oldest first, of stage 0
// EXCHANGED: 'chimera.yield' op expected value 4 to be the stash in flight, oldest first, of stage 0

// One stash is replaced by the other.
// RUN: sed '/worker 0 /,/worker 1 /{/} step {/,/epilogue {/s/%%stash_1, %%stash_4/%%stash_4, %%stash_4/}' %t | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=DROPPED
// DROPPED: 'chimera.yield' op expected value 4 in a buffer of its own, got buffer 4
// DROPPED: 'chimera.yield' op expected value 3 to be the stash in flight, oldest first, of stage 0

// The newest weights overwrite the weights that the next step reads.
// RUN: sed '/worker 0 /,/worker 1 /{/} step {/,/epilogue {/s/buffers \[2, 1\]/buffers [0, 1]/}' %t | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=OVERWRITTEN
// OVERWRITTEN: 'chimera.yield' op expected its operand in buffer 0, whose bytes a later value has overwritten
// OVERWRITTEN: 'chimera.yield' op expected value 1 in a buffer of its own, got buffer 0

// A loop-carried value has a buffer that shares bytes with others, so it cannot
// be exchanged.
// RUN: sed '/worker 0 /,/worker 1 /s/buffer 2 : !chimera.weights<64> at 192/buffer 2 : !chimera.weights<64> at 256/' %t | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: 'chimera.yield' op expected value 0 in buffer 2, where the next section takes it

// The update is missing.
// RUN: sed '/worker 2 /,${/} step {/,/epilogue {/{/optimizer_step/d; s/yield [^:]*:/yield %%arg0, %%arg1, %%arg2, %%arg3 :/}}' %t | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: 'chimera.worker' op expected 1 updates of stage 2, got 0

// The worker has a replica that the pipeline does not have.
// RUN: sed 's/holds \[0, 2\]/holds [0, 3]/' %t | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=REPLICA
// REPLICA: 'chimera.worker' op expected replicas of pipeline 0 with stages below 3, as steps overlap
