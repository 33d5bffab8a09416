// Two workers that disagree about the messages between them. The first pair that
// does not match is shown. The pipeline sends two activations to worker 1.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-allocate -o %t.mlir
//
// The order on a channel is exchanged at one end.
// RUN: %python %S/Inputs/edit.py swap 1 '%%0 = chimera.post_receive' '%%1 = chimera.post_receive' \
// RUN:   < %t.mlir > %t.swapped.mlir
// RUN: not chimera-opt %t.swapped.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=SWAPPED
// SWAPPED: {{:[0-9]+:12}}: error: channel from worker 0 to worker 1: expected send 0 and receive 0 to agree,
// SWAPPED-SAME: got worker 0 instruction 2 (post_send activation pipeline 0 stage 0 micro-batch 0 to worker 1) at {{.*:12}} with 64 bytes and worker 1 instruction 0 (post_recv activation pipeline 0 stage 0 micro-batch 1 from worker 0) at {{.*:12}} with 64 bytes
// SWAPPED-NOT: error
//
// A receive is missing, and its consumer uses the other value.
// RUN: %python %S/Inputs/edit.py drop 1 '%%1 = chimera.post_receive' , drop 1 '%%5 = chimera.wait' , \
// RUN:   replace 1 '%%output_0, %%stash_1 = ' '(%%5, ' '(%%3, ' < %t.mlir > %t.missing.mlir
// RUN: not chimera-opt %t.missing.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: channel from worker 0 to worker 1: expected send 1 and receive 1 to agree,
// MISSING-SAME: got worker 0 instruction 5 (post_send activation pipeline 0 stage 0 micro-batch 1 to worker 1) at {{.*}} with 64 bytes and no receive
// MISSING-NOT: error
//
// A receive is doubled.
// RUN: %python %S/Inputs/edit.py \
// RUN:   insert 1 '%%1 = chimera.post_receive' '%%again = chimera.post_receive from 0 pipeline 0 stage 0 micro_batch 1 buffers [3] : <!chimera.activation<64>>' , \
// RUN:   insert 1 '%%5 = chimera.wait' 'chimera.wait %%again buffers [3] : !chimera.arriving<!chimera.activation<64>> -> !chimera.activation<64>' \
// RUN:   < %t.mlir > %t.doubled.mlir
// RUN: not chimera-opt %t.doubled.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=DOUBLED
// DOUBLED: {{:[0-9]+:16}}: error: channel from worker 0 to worker 1: expected send 2 and receive 2 to agree,
// DOUBLED-SAME: got no send and worker 1 instruction 2 (post_recv activation pipeline 0 stage 0 micro-batch 1 from worker 0) at {{.*}} with 64 bytes
// DOUBLED-NOT: error
//
// Other bytes than those that the label implies. The error is found without
// comparing posts: each end is compared with the stage's sizes, and one of them
// is wrong. In IR the two ends cannot differ in another way, because only
// activations and gradients are messages, and their labels determine their bytes.
// A program can have messages of weight gradients, whose ends are compared:
// VerifyMessages.IsRefused, case MessageOfDifferentBytes.
// RUN: %python %S/Inputs/edit.py replace 1 'chimera.buffer 3 ' '64' '32' , \
// RUN:   replace 1 '%%1 = chimera.post_receive' '64' '32' , replace 1 '%%5 = chimera.wait' '64' '32' , \
// RUN:   replace 1 '%%output_0, %%stash_1 = ' 'activation<64>' 'activation<32>' < %t.mlir > %t.bytes.mlir
// RUN: not chimera-opt %t.bytes.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: {{:[0-9]+:12}}: error: worker 1 instruction 1 (post_recv activation pipeline 0 stage 0 micro-batch 1 from worker 0) at {{.*}}: expected 64 bytes of activation, got 32
// BYTES: error: worker 1 instruction 7 (forward pipeline 0 stage 1 micro-batch 1) at {{.*}}: expected 64 bytes of activation, got 32
// BYTES-NOT: error
//
// Every message is right, but a forward reads that of another micro-batch.
// RUN: chimera-opt %s --chimera-to-projected | %python %S/Inputs/edit.py \
// RUN:   replace 1 '%%output_0, %%stash_1 = ' '(%%5, ' '(%%3, ' > %t.operand.mlir
// RUN: not chimera-opt %t.operand.mlir --chimera-allocate --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=OPERAND
// OPERAND: {{:[0-9]+:29}}: error: worker 1 instruction 7 (forward pipeline 0 stage 1 micro-batch 1) at {{.*}}: expected the activation of stage 0 micro-batch 1, got the activation of stage 0 micro-batch 0 (buffer 2)
// OPERAND-NOT: error
//
// A stash that states fewer bytes than its stage, and so wrong peaks.
// RUN: sed -e 's/chimera.stash<64>/chimera.stash<1>/g' %t.mlir > %t.stash.mlir
// RUN: not chimera-opt %t.stash.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=STASH
// STASH: {{:[0-9]+:25}}: error: worker 0 instruction 1 (forward pipeline 0 stage 0 micro-batch 0) at {{.*}}: expected 64 bytes of stash, got 1
chimera.pipeline @p stages(2) micro_batches(2) schedule("gpipe")
