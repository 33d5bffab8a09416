//===- ChimeraFormulas.cpp - Closed forms of Chimera ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Chimera.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

bool isDirect(const Sizes &s) {
  return concatenationOf(s.options) == Concatenation::Direct;
}
bool isEager(const Sizes &s) {
  return concatenationOf(s.options) == Concatenation::Eager;
}
bool isEven(const Sizes &s) { return s.workers % 2 == 0; }
bool inUnits(const Sizes &s) { return s.microBatches % s.workers == 0; }
bool inPairsOfUnits(const Sizes &s) {
  return s.microBatches % (2 * s.workers) == 0;
}
/// True for fine-tuned doubling if D is even, N is a multiple of 2D and b >= f.
bool isFineTuned(const Sizes &s) {
  return concatenationOf(s.options) == Concatenation::FineTunedDoubling &&
         isEven(s) && inPairsOfUnits(s) && s.backward >= s.forward;
}
bool isDoubling(const Sizes &s) {
  return concatenationOf(s.options) == Concatenation::Doubling && isEven(s) &&
         inPairsOfUnits(s) && s.backward >= s.forward;
}
bool isHalving(const Sizes &s) {
  return concatenationOf(s.options) == Concatenation::Halving && isEven(s) &&
         inUnits(s) && s.backward >= s.forward;
}

int64_t directTime(const Sizes &s) {
  int64_t d = s.workers, p = pipelinesOf(s.options), f = s.forward,
          b = s.backward;
  int64_t k = (s.microBatches - 1) / d, rest = s.microBatches - k * d;
  int64_t n = (rest + p - 1) / p, h = 2 * d / p;
  return k * (d * (f + b) + (h - 2) * (b - f)) + d * (f + b) + 2 * (n - 1) * b -
         (k > 0 ? std::min(f, (h / 2 - n) * (b - f)) : 0);
}

/// The bubble ratio of doubling with one forward for each pair of
/// micro-batches. Per unit, halving has half the work and half the idle time of
/// doubling, so its ratio is the same. `units` is N/(2D) for doubling and N/D
/// for halving.
double pairsBubble(const Sizes &s, int64_t units) {
  int64_t f = s.forward, b = s.backward;
  int64_t h = 2 * s.workers / pipelinesOf(s.options);
  int64_t twice =
      h == s.workers
          ? 2 * (h - 2) *
                (std::max(2 * f, b) + (units - 1) * std::abs(b - 2 * f))
          : (h - 2) * (std::max(2 * f + b, 2 * b) +
                       2 * (units - 1) * std::max<int64_t>(0, b - 2 * f));
  return ratio(twice, 4 * units * s.workers * (f + b));
}

} // namespace

std::span<const BubbleFormula> chimeraBubbles() {
  static constexpr BubbleFormula kAll[] = {
      {"(D-2)/(2N+D-2)", "D even, D divides N, p = 2, b = f", kTable2,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && inUnits(s) &&
                pipelinesOf(s.options) == 2 && s.backward == s.forward;
       },
       [](const Sizes &s) { return ratio(s.workers - 2, 2 * s.microBatches); }},
      {"(D-2)/(2N+D-2)",
       "fine-tuned doubling, D even, 2D divides N, p = 2, b = 2f", kTable2,
       [](const Sizes &s) {
         return isFineTuned(s) && pipelinesOf(s.options) == 2 &&
                s.backward == 2 * s.forward;
       },
       [](const Sizes &s) { return ratio(s.workers - 2, 2 * s.microBatches); }},
      {"(D-p)/(pN+D-p)", "D even, D divides N, b = f", kTable3,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && inUnits(s) &&
                s.backward == s.forward;
       },
       [](const Sizes &s) {
         int64_t p = pipelinesOf(s.options);
         return ratio(s.workers - p, p * s.microBatches);
       }},
      {"(D-2)/(3N/2+D-2)", "D even, N = D, p = 2, b = 2f", kSection2,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && s.microBatches == s.workers &&
                pipelinesOf(s.options) == 2 && s.backward == 2 * s.forward;
       },
       [](const Sizes &s) {
         return ratio(2 * (s.workers - 2), 3 * s.microBatches);
       }},
      {"(D-p)/(3pN/4+D-p)", "D even, N = D, b = 2f", kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && s.microBatches == s.workers &&
                s.backward == 2 * s.forward;
       },
       [](const Sizes &s) {
         int64_t p = pipelinesOf(s.options);
         return ratio(4 * (s.workers - p), 3 * p * s.microBatches);
       }},
      {"(K+1)(D-2)/(3N+(K+1)(D-2))", "D even, N = KD, p = 2, b = 2f", kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && inUnits(s) &&
                pipelinesOf(s.options) == 2 && s.backward == 2 * s.forward;
       },
       [](const Sizes &s) {
         int64_t k = s.microBatches / s.workers;
         return ratio((k + 1) * (s.workers - 2), 3 * s.microBatches);
       }},
      {"1 - N(f+b)/T, T = k(D(f+b) + (h-2)(b-f)) + D(f+b) + 2(n-1)b - [k>0] "
       "min(f, (h/2-n)(b-f)), k = ceil(N/D)-1, h = 2D/p, n = ceil((N-kD)/p)",
       "D even, b >= f", kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && s.backward >= s.forward;
       },
       [](const Sizes &s) { return idleShare(s, directTime(s)); }},
      {"idle = (h-2)(f + K(b-f)) - [h>2] (K-1) min(f, b-f), h = 2D/p",
       "eager, D even, N = KD, b >= f", kMeasured,
       [](const Sizes &s) {
         return isEager(s) && isEven(s) && inUnits(s) &&
                s.backward >= s.forward;
       },
       [](const Sizes &s) {
         int64_t f = s.forward, b = s.backward;
         int64_t h = 2 * s.workers / pipelinesOf(s.options);
         int64_t k = s.microBatches / s.workers;
         return ratio((h - 2) * (f + k * (b - f)) -
                          (h > 2 ? (k - 1) * std::min(f, b - f) : 0),
                      s.microBatches * (f + b));
       }},
      {"idle = (h-2)(max((f+b)/2, b-f) + (U-1) max(0, b-2f)), h = 2D/p, "
       "N = 2DU",
       "fine-tuned doubling, D even, 2D divides N, b >= f", kMeasured,
       isFineTuned,
       [](const Sizes &s) {
         int64_t f = s.forward, b = s.backward;
         int64_t h = 2 * s.workers / pipelinesOf(s.options);
         int64_t u = s.microBatches / (2 * s.workers);
         int64_t twice =
             (h - 2) * (std::max(f + b, 2 * (b - f)) +
                        2 * (u - 1) * std::max<int64_t>(0, b - 2 * f));
         return ratio(twice, 2 * s.microBatches * (f + b));
       }},
      {"(D-2)/(3N+D-2)", "halving, D even, D divides N, p = 2, b = 2f",
       kMeasured,
       [](const Sizes &s) {
         return isHalving(s) && pipelinesOf(s.options) == 2 &&
                s.backward == 2 * s.forward;
       },
       [](const Sizes &s) { return ratio(s.workers - 2, 3 * s.microBatches); }},
      {"idle = (D-2)(max(2f, b) + (U-1)|b-2f|), half as much with halving; for "
       "p > 2 idle = (h-2)(max((2f+b)/2, b) + (U-1) max(0, b-2f)), h = 2D/p; "
       "N = 2DU, with halving DU",
       "doubling or halving, D even, U whole, b >= f", kMeasured,
       [](const Sizes &s) { return isDoubling(s) || isHalving(s); },
       [](const Sizes &s) {
         return pairsBubble(s, s.microBatches /
                                   (isHalving(s) ? s.workers : 2 * s.workers));
       }},
      {"1 - N(f+b)/T, T = D(f+b) + (N-1)b", "D odd, N < D, b >= f", kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && !isEven(s) && s.microBatches < s.workers &&
                s.backward >= s.forward;
       },
       [](const Sizes &s) {
         return idleShare(s, s.workers * (s.forward + s.backward) +
                                 (s.microBatches - 1) * s.backward);
       }},
      {"1 - N(f+b)/T, T = (D + 2(K-1))f + K(2D-2)b",
       "D odd, N = K(D-1), b >= f", kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && !isEven(s) &&
                s.microBatches % (s.workers - 1) == 0 &&
                s.backward >= s.forward;
       },
       [](const Sizes &s) {
         int64_t k = s.microBatches / (s.workers - 1);
         return idleShare(s, (s.workers + 2 * (k - 1)) * s.forward +
                                 k * (2 * s.workers - 2) * s.backward);
       }},
  };
  return kAll;
}

std::span<const PeakFormula> chimeraPeaks() {
  using Interval = std::pair<int64_t, int64_t>;
  static constexpr PeakFormula kAll[] = {
      {"D-D/p+1 to D", "D even, D divides N, b >= f", kTable3,
       [](const Sizes &s) {
         return isOneByOne(concatenationOf(s.options)) && isEven(s) &&
                inUnits(s) && s.backward >= s.forward;
       },
       [](const Sizes &s) {
         return Interval(s.workers - s.workers / pipelinesOf(s.options) + 1,
                         s.workers);
       }},
      {"3D/2+1 to 2D", "doubling, D even, 2D divides N, p = 2, b >= f",
       kMeasured,
       [](const Sizes &s) {
         return (isDoubling(s) || isFineTuned(s)) &&
                pipelinesOf(s.options) == 2;
       },
       [](const Sizes &s) {
         return Interval(3 * s.workers / 2 + 1, 2 * s.workers);
       }},
      {"2(D-D/p+1) to 2D", "doubling, D even, 2D divides N, p > 2, b >= f",
       kMeasured,
       [](const Sizes &s) {
         return (isDoubling(s) || isFineTuned(s)) && pipelinesOf(s.options) > 2;
       },
       [](const Sizes &s) {
         return Interval(
             2 * (s.workers - s.workers / pipelinesOf(s.options) + 1),
             2 * s.workers);
       }},
      {"p = 2: ceil(3D/4+1/2) to D, p > 2: D-D/p+1 to D",
       "halving, D even, D divides N, b >= f", kMeasured, isHalving,
       [](const Sizes &s) {
         int64_t p = pipelinesOf(s.options);
         return Interval(p == 2 ? (3 * s.workers / 2 + 2) / 2
                                : s.workers - s.workers / p + 1,
                         s.workers);
       }},
  };
  return kAll;
}

} // namespace chimera::schedule
