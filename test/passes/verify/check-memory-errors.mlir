// The pass checks memory only on allocated workers.
//
// RUN: chimera-opt %s --chimera-to-scheduled | not chimera-opt --chimera-check-memory 2>&1 | FileCheck %s --check-prefix=WORKERS
// WORKERS: error: 'chimera.pipeline' op expected workers: run chimera-project first
// RUN: chimera-opt %s --chimera-to-projected | not chimera-opt --chimera-check-memory 2>&1 | FileCheck %s --check-prefix=ARENA
// ARENA: error: 'chimera.worker' op expected the bytes of its arena and stashes: run chimera-allocate first
//
// The passes on workers do not check the cap.
// RUN: chimera-opt %s --chimera-to-projected -o %t
// RUN: sed 's/memory_cap(1 KiB)/memory_cap(600)/' %t | chimera-opt --pass-pipeline='builtin.module(chimera.pipeline(chimera.worker(chimera-place-worker-messages,chimera-allocate-worker)))' -o %t.allocated
// RUN: FileCheck %s < %t.allocated
// CHECK: chimera.worker 0 holds [0, 0] arguments [0, 1] arena 512 stashes 128 peak 576 at
// CHECK: chimera.worker 1 holds [0, 1] arguments [0, 1] arena 640 stashes 64 peak
// RUN: not chimera-opt %t.allocated --chimera-check-memory 2>&1 | FileCheck %s --check-prefix=CAP
// CAP: error: 'chimera.pipeline' op expected workers of at most 600 bytes (memory_cap), got 704 on worker 1: an arena of 640 and stashes of 64
// RUN: sed 's/memory_cap(600)/memory_cap(704)/' %t.allocated | chimera-opt --chimera-check-memory -o /dev/null
//
// The passes refuse workers that are already allocated.
// RUN: not chimera-opt %t.allocated --chimera-place-messages 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: not chimera-opt %t.allocated --chimera-allocate 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: not chimera-opt %t.allocated --pass-pipeline='builtin.module(chimera.pipeline(chimera.worker(chimera-place-worker-messages)))' 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: error: 'chimera.worker' op expected a worker without buffers, as chimera-project makes it
//
// Pipelines of passes run only on modules.
// RUN: not chimera-opt %t --pass-pipeline='builtin.module(chimera.pipeline(chimera-allocate))' 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: not chimera-opt %t --pass-pipeline='builtin.module(chimera.pipeline(chimera-place-messages))' 2>&1 | FileCheck %s --check-prefix=NESTED
// NESTED: --chimera-{{allocate|place-messages}} runs on a module, not inside a chimera.pipeline
//
// The verifier checks the stated bytes of stashes.
// RUN: sed 's/stashes 128/stashes 64/' %t.allocated | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=STASHES
// STASHES: error: 'chimera.worker' op expected 128 bytes of stashes at a time, got 64
// RUN: sed '/chimera.wait .* : !chimera.sending/d' %t.allocated | not chimera-opt --chimera-verify-allocated 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: error: 'chimera.post_send' op expected its transfer to be waited for once, got 0 uses
chimera.pipeline @p stages(2) micro_batches(2) schedule("1f1b") memory_cap(1024)
