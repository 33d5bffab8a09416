// Two neighbours that both send, wait for that, and then receive. Under
// rendezvous each waits for the other; with buffers both continue.
//
// RUN: chimera-opt %s --chimera-to-projected | %python %S/Inputs/edit.py \
// RUN:   move 0 'chimera.wait %%1 ' '%%1 = chimera.post_send' , \
// RUN:   move 1 '%%0 = chimera.post_receive' 'chimera.wait %%2 ' > %t.mlir
// RUN: not chimera-opt %t.mlir --chimera-allocate --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s
// RUN: chimera-opt %t.mlir --chimera-allocate --chimera-verify-program=messages=buffered -o /dev/null
//
// The same for the program: the tool that writes the file refuses it.
// RUN: chimera-opt %t.mlir --chimera-allocate -o %t.allocated.mlir
// RUN: not chimera-translate --chimera-to-program %t.allocated.mlir -o /dev/null 2>&1 | FileCheck %s
//
// CHECK: {{mlir:[0-9]+:7}}: error: expected no deadlock under the rendezvous model, got a cycle of 2:
// CHECK-NEXT: {{^}}    rank 0: worker 0 instruction 3 (wait for post_send activation pipeline 0 stage 0 micro-batch 0 to worker 1) at {{.*mlir:[0-9]+:7$}}
// CHECK-NEXT: {{^}}      waits until worker 1 instruction 4 (post_recv activation pipeline 0 stage 0 micro-batch 0 from worker 0) at {{.*mlir:[0-9]+:12}} is reached{{$}}
// CHECK-NEXT: {{^}}    rank 1: worker 1 instruction 3 (wait for post_send activation pipeline 1 stage 0 micro-batch 1 to worker 0) at {{.*mlir:[0-9]+:7$}}
// CHECK-NEXT: {{^}}      waits until worker 0 instruction 4 (post_recv activation pipeline 1 stage 0 micro-batch 1 from worker 1) at {{.*mlir:[0-9]+:12}} is reached{{$}}
// CHECK-NEXT: chimera.wait %1 : !chimera.sending
// CHECK-NOT: error
chimera.pipeline @p stages(2) micro_batches(2) schedule("chimera")
