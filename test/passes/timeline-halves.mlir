// If a time has a fraction, the parts of a backward are still equal, whatever
// the other options are.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=0.5 backward=0.5" -o /dev/null | FileCheck %s --check-prefixes=HALVES,NOW
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=0.5 backward=0.5 p2p=0.25" -o /dev/null | FileCheck %s --check-prefixes=HALVES,LATER
// HALVES: split: gpipe,
// HALVES: (forward 0.5, input gradient 0.25, weight gradient 0.25, p2p
// NOW-SAME: 0)
// LATER-SAME: 0.25)

// A half of each half of a micro-batch, and its recompute.
// HALVES: halving: chimera
// HALVES-NEXT: t 0 0.125 0.25
// HALVES: (forward 0.5, input gradient 0.25, weight gradient 0.25, recompute 0.5, p2p
// HALVES: whole: gpipe,
// HALVES-NEXT: t 0 0.{{2?}}5
// HALVES: (forward 0.5, backward 0.5, p2p

// A given time of weight gradients is not changed; neither is its part.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=0.5 backward=0.5 weight-gradient=0.1" -o /dev/null | FileCheck %s --check-prefix=GIVEN
// GIVEN-COUNT-2: input gradient 0.4, weight gradient 0.1

// Whole times stay whole.
// RUN: sed /@halving/d %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=3" -o /dev/null | FileCheck %s --check-prefix=WHOLE
// WHOLE: (forward 1, input gradient 2, weight gradient 1, p2p 0)
// RUN: sed /@halving/d %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=1" -o /dev/null | FileCheck %s --check-prefix=ONE
// ONE: (forward 1, input gradient 1, weight gradient 1, p2p 0)
chimera.pipeline @split stages(2) micro_batches(2) schedule(gpipe) split_backward
chimera.pipeline @halving stages(2) micro_batches(2) schedule(chimera, {concatenation = halving}) split_backward recompute(all)
chimera.pipeline @whole stages(2) micro_batches(2) schedule(gpipe)
