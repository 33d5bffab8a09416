// SGD has no optimizer state. Every phase must be able to write and read an
// optimizer state of 0 bytes.
//
// RUN: chimera-opt %s --chimera-to-allocated > %t
// RUN: FileCheck %s --input-file %t
// RUN: chimera-opt %s --chimera-partition | chimera-opt --chimera-unroll | chimera-opt --chimera-schedule | chimera-opt --chimera-communicate | chimera-opt --chimera-synchronise | chimera-opt --chimera-project | chimera-opt --chimera-place-messages | chimera-opt --chimera-allocate --chimera-verify-allocated | diff %t -

// CHECK: !chimera.optimizer_state<0>
chimera.model @small gpt2 layers(2) heads(2) width(8) context(16) vocabulary(256)
chimera.training @plainly optimizer(sgd)
chimera.pipeline @p of @small with @plainly stages(2) micro_batches(2)
    schedule("gpipe")
chimera.pipeline @q of @small with @plainly stages(2) micro_batches(2)
    schedule("pipedream")
