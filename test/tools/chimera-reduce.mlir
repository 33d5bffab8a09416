// The reducer keeps the one op of a module that shows a fault.
//
// RUN: chimera-reduce %s --reduction-tree="traversal-mode=0 test=%S/Inputs/fails-to-schedule.sh" | FileCheck %s --implicit-check-not="chimera."

// CHECK: chimera.pipeline @faulty stages(4) micro_batches(4) schedule("nonesuch")

chimera.pipeline @sound stages(4) micro_batches(4) schedule("chimera")
chimera.pipeline @other stages(2) micro_batches(8) schedule("1f1b")
chimera.pipeline @faulty stages(4) micro_batches(4) schedule("nonesuch")
chimera.pipeline @third stages(2) micro_batches(2) schedule("gpipe")
chimera.model @unused gpt2 layers(4) heads(4) width(128) context(128)
    vocabulary(256)
