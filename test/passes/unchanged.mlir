// Actions have side effects, so no standard pass merges, drops or moves them.
// Otherwise a pass could merge the equal forwards of two micro-batches, and
// could drop actions whose results are not used.
//
// RUN: chimera-opt %s --chimera-to-scheduled > %t.scheduled
// RUN: chimera-opt %t.scheduled --cse --canonicalize | diff %t.scheduled -
// RUN: chimera-opt %s --chimera-to-synchronised > %t.synchronised
// RUN: chimera-opt %t.synchronised --canonicalize --cse | diff %t.synchronised -
// RUN: chimera-opt %s --chimera-to-allocated > %t.allocated
// RUN: chimera-opt %t.allocated --cse --canonicalize | diff %t.allocated -

chimera.pipeline @chimera stages(4) micro_batches(4) schedule("chimera")
    data_parallel(2)
chimera.pipeline @split stages(2) micro_batches(3) schedule("1f1b")
    split_backward
chimera.pipeline @recomputed stages(2) micro_batches(4)
    schedule("chimera", {concatenation = "doubling"}) recompute(all fused)
chimera.pipeline @halved stages(2) micro_batches(2)
    schedule("chimera", {concatenation = "halving"}) recompute(all)
