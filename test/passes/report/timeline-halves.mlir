// If the time of a backward has a fraction, its two halves are still equal, for
// any other options.
//
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=0.5 backward=0.5" -o /dev/null | FileCheck %s --check-prefixes=HALVES,NOW
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=0.5 backward=0.5 p2p=0.25" -o /dev/null | FileCheck %s --check-prefixes=HALVES,LATER
// HALVES: split: gpipe,
// HALVES: (forward 0.5, input gradient 0.25, weight gradient 0.25, p2p
// NOW-SAME: 0)
// LATER-SAME: 0.25)

// With halving and split backwards, half of a half takes 0.125. A recompute is
// 0.5.
// HALVES: halving: chimera
// HALVES-NEXT: t 0 0.125 0.25
// HALVES: (forward 0.5, input gradient 0.25, weight gradient 0.25, recompute 0.5, p2p
// HALVES: whole: gpipe,
// HALVES-NEXT: t 0 0.{{2?}}5
// HALVES: (forward 0.5, backward 0.5, p2p

// If the time of weight gradients is given, it is not changed.
// RUN: chimera-opt %s --chimera-to-scheduled --chimera-print-timeline="forward=0.5 backward=0.5 weight-gradient=0.1" -o /dev/null | FileCheck %s --check-prefix=GIVEN
// GIVEN-COUNT-2: input gradient 0.4, weight gradient 0.1

// A time that is a whole number stays a whole number.
// RUN: sed /@halving/d %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=3" -o /dev/null | FileCheck %s --check-prefix=WHOLE
// WHOLE: (forward 1, input gradient 2, weight gradient 1, p2p 0)
// RUN: sed /@halving/d %s | chimera-opt --chimera-to-scheduled --chimera-print-timeline="forward=1 backward=1" -o /dev/null | FileCheck %s --check-prefix=ONE
// ONE: (forward 1, input gradient 1, weight gradient 1, p2p 0)
chimera.pipeline @split stages(2) micro_batches(2) schedule(gpipe) split_backward
chimera.pipeline @halving stages(2) micro_batches(2) schedule(chimera, {concatenation = halving}) split_backward recompute(all)
chimera.pipeline @whole stages(2) micro_batches(2) schedule(gpipe)
