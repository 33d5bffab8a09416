//===- Formulas.cpp - Closed forms of bubble and memory -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Formulas.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace chimera::schedule {

namespace {

constexpr const char *kTable2 = "Li and Hoefler, SC'21, Table 2";
constexpr const char *kTable3 = "Li and Hoefler, SC'21, Table 3";
constexpr const char *kSection2 = "Li and Hoefler, SC'21, section 2";
constexpr const char *kMeasured = "found by simulation";

bool isDirect(const Sizes &s) {
  return s.options.concatenation == Concatenation::Direct;
}
bool isEager(const Sizes &s) {
  return s.options.concatenation == Concatenation::Eager;
}
bool isEven(const Sizes &s) { return s.stages % 2 == 0; }
bool inUnits(const Sizes &s) { return s.microBatches % s.stages == 0; }
bool inPairsOfUnits(const Sizes &s) {
  return s.microBatches % (2 * s.stages) == 0;
}
/// Whole units of pairs.
bool isFineTuned(const Sizes &s) {
  return s.options.concatenation == Concatenation::FineTunedDoubling &&
         isEven(s) && inPairsOfUnits(s) && s.backward >= s.forward;
}
bool isDoubling(const Sizes &s) {
  return s.options.concatenation == Concatenation::Doubling && isEven(s) &&
         inPairsOfUnits(s) && s.backward >= s.forward;
}
bool isHalving(const Sizes &s) {
  return s.options.concatenation == Concatenation::Halving && isEven(s) &&
         inUnits(s) && s.backward >= s.forward;
}

/// The share of a makespan in which a worker is idle that runs all N
/// micro-batches once.
double idleShare(const Sizes &s, int64_t makespan) {
  return 1 - static_cast<double>(s.microBatches * (s.forward + s.backward)) /
                 static_cast<double>(makespan);
}

double ratio(int64_t idle, int64_t busy) {
  return static_cast<double>(idle) / static_cast<double>(idle + busy);
}

bool always(const Sizes &) { return true; }

double linearBubble(const Sizes &s) {
  return ratio(s.stages - 1, s.microBatches);
}

double gemsBubble(const Sizes &s) {
  auto [less, more] = std::minmax(s.forward, s.backward);
  return idleShare(s, s.stages * (s.forward + s.backward) +
                          (s.microBatches - 1) * (s.stages * more + less));
}

int64_t directTime(const Sizes &s) {
  int64_t d = s.stages, p = s.options.pipelines, f = s.forward, b = s.backward;
  int64_t k = (s.microBatches - 1) / d, rest = s.microBatches - k * d;
  int64_t n = (rest + p - 1) / p, h = 2 * d / p;
  return k * (d * (f + b) + (h - 2) * (b - f)) + d * (f + b) + 2 * (n - 1) * b -
         (k > 0 ? std::min(f, (h / 2 - n) * (b - f)) : 0);
}

/// The bubble of doubling with one forward for a pair. Halving has half as much
/// to run and idles half as long.
double pairsBubble(const Sizes &s, int64_t units) {
  int64_t f = s.forward, b = s.backward;
  int64_t h = 2 * s.stages / s.options.pipelines;
  int64_t twice =
      h == s.stages
          ? 2 * (h - 2) *
                (std::max(2 * f, b) + (units - 1) * std::abs(b - 2 * f))
          : (h - 2) * (std::max(2 * f + b, 2 * b) +
                       2 * (units - 1) * std::max<int64_t>(0, b - 2 * f));
  return ratio(twice, 4 * units * s.stages * (f + b));
}

double noBubble(const Sizes &) { return 0; }

} // namespace

std::span<const BubbleFormula> bubbleFormulas() {
  static constexpr auto all = std::to_array<BubbleFormula>({
      {"gpipe", "(D-1)/(N+D-1)", "all N", kTable2, always, linearBubble},
      {"1f1b", "(D-1)/(N+D-1)", "all N", kTable2, always, linearBubble},
      {"gems", "1 - N(f+b)/T, T = D(f+b) + (N-1)(D max(f,b) + min(f,b))",
       "all N", kMeasured, always, gemsBubble},
      {"chimera", "(D-2)/(2N+D-2)", "D even, D divides N, p = 2, b = f",
       kTable2,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && inUnits(s) &&
                s.options.pipelines == 2 && s.backward == s.forward;
       },
       [](const Sizes &s) { return ratio(s.stages - 2, 2 * s.microBatches); }},
      {"chimera", "(D-2)/(2N+D-2)",
       "fine-tuned doubling, D even, 2D divides N, p = 2, b = 2f", kTable2,
       [](const Sizes &s) {
         return isFineTuned(s) && s.options.pipelines == 2 &&
                s.backward == 2 * s.forward;
       },
       [](const Sizes &s) { return ratio(s.stages - 2, 2 * s.microBatches); }},
      {"chimera", "(D-p)/(pN+D-p)", "D even, D divides N, b = f", kTable3,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && inUnits(s) &&
                s.backward == s.forward;
       },
       [](const Sizes &s) {
         int64_t p = s.options.pipelines;
         return ratio(s.stages - p, p * s.microBatches);
       }},
      {"chimera", "(D-2)/(3N/2+D-2)", "D even, N = D, p = 2, b = 2f", kSection2,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && s.microBatches == s.stages &&
                s.options.pipelines == 2 && s.backward == 2 * s.forward;
       },
       [](const Sizes &s) {
         return ratio(2 * (s.stages - 2), 3 * s.microBatches);
       }},
      {"chimera", "(D-p)/(3pN/4+D-p)", "D even, N = D, b = 2f", kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && s.microBatches == s.stages &&
                s.backward == 2 * s.forward;
       },
       [](const Sizes &s) {
         int64_t p = s.options.pipelines;
         return ratio(4 * (s.stages - p), 3 * p * s.microBatches);
       }},
      {"chimera", "(K+1)(D-2)/(3N+(K+1)(D-2))", "D even, N = KD, p = 2, b = 2f",
       kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && inUnits(s) &&
                s.options.pipelines == 2 && s.backward == 2 * s.forward;
       },
       [](const Sizes &s) {
         int64_t k = s.microBatches / s.stages;
         return ratio((k + 1) * (s.stages - 2), 3 * s.microBatches);
       }},
      {"chimera",
       "1 - N(f+b)/T, T = k(D(f+b) + (h-2)(b-f)) + D(f+b) + 2(n-1)b - [k>0] "
       "min(f, (h/2-n)(b-f)), k = ceil(N/D)-1, h = 2D/p, n = ceil((N-kD)/p)",
       "D even, b >= f", kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && s.backward >= s.forward;
       },
       [](const Sizes &s) { return idleShare(s, directTime(s)); }},
      {"chimera",
       "idle = (h-2)(f + K(b-f)) - [h>2] (K-1) min(f, b-f), h = 2D/p",
       "eager, D even, N = KD, b >= f", kMeasured,
       [](const Sizes &s) {
         return isEager(s) && isEven(s) && inUnits(s) &&
                s.backward >= s.forward;
       },
       [](const Sizes &s) {
         int64_t f = s.forward, b = s.backward;
         int64_t h = 2 * s.stages / s.options.pipelines;
         int64_t k = s.microBatches / s.stages;
         return ratio((h - 2) * (f + k * (b - f)) -
                          (h > 2 ? (k - 1) * std::min(f, b - f) : 0),
                      s.microBatches * (f + b));
       }},
      {"chimera",
       "idle = (h-2)(max((f+b)/2, b-f) + (U-1) max(0, b-2f)), h = 2D/p, "
       "N = 2DU",
       "fine-tuned doubling, D even, 2D divides N, b >= f", kMeasured,
       isFineTuned,
       [](const Sizes &s) {
         int64_t f = s.forward, b = s.backward;
         int64_t h = 2 * s.stages / s.options.pipelines;
         int64_t u = s.microBatches / (2 * s.stages);
         int64_t twice =
             (h - 2) * (std::max(f + b, 2 * (b - f)) +
                        2 * (u - 1) * std::max<int64_t>(0, b - 2 * f));
         return ratio(twice, 2 * s.microBatches * (f + b));
       }},
      {"chimera", "(D-2)/(3N+D-2)",
       "halving, D even, D divides N, p = 2, b = 2f", kMeasured,
       [](const Sizes &s) {
         return isHalving(s) && s.options.pipelines == 2 &&
                s.backward == 2 * s.forward;
       },
       [](const Sizes &s) { return ratio(s.stages - 2, 3 * s.microBatches); }},
      {"chimera",
       "idle = (D-2)(max(2f, b) + (U-1)|b-2f|), half as much with halving; for "
       "p > 2 idle = (h-2)(max((2f+b)/2, b) + (U-1) max(0, b-2f)), h = 2D/p; "
       "N = 2DU, with halving DU",
       "doubling or halving, D even, U whole, b >= f", kMeasured,
       [](const Sizes &s) { return isDoubling(s) || isHalving(s); },
       [](const Sizes &s) {
         return pairsBubble(s, s.microBatches /
                                   (isHalving(s) ? s.stages : 2 * s.stages));
       }},
      {"chimera", "1 - N(f+b)/T, T = D(f+b) + (N-1)b", "D odd, N < D, b >= f",
       kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && !isEven(s) && s.microBatches < s.stages &&
                s.backward >= s.forward;
       },
       [](const Sizes &s) {
         return idleShare(s, s.stages * (s.forward + s.backward) +
                                 (s.microBatches - 1) * s.backward);
       }},
      {"chimera", "1 - N(f+b)/T, T = (D + 2(K-1))f + K(2D-2)b",
       "D odd, N = K(D-1), b >= f", kMeasured,
       [](const Sizes &s) {
         return isDirect(s) && !isEven(s) &&
                s.microBatches % (s.stages - 1) == 0 && s.backward >= s.forward;
       },
       [](const Sizes &s) {
         int64_t k = s.microBatches / (s.stages - 1);
         return idleShare(s, (s.stages + 2 * (k - 1)) * s.forward +
                                 k * (2 * s.stages - 2) * s.backward);
       }},
      {"pipedream", "0", "steady state, all N", kTable2, always, noBubble},
      {"pipedream-2bw", "0", "steady state, all N", kTable2, always, noBubble},
  });
  return all;
}

std::span<const PeakFormula> peakFormulas() {
  using Interval = std::pair<int64_t, int64_t>;
  constexpr auto upToStages = [](const Sizes &s) {
    return Interval(1, std::min(s.microBatches, s.stages));
  };
  static constexpr auto all = std::to_array<PeakFormula>({
      {"gpipe", "N", "all N", kTable2, always,
       [](const Sizes &s) { return Interval(s.microBatches, s.microBatches); }},
      {"1f1b", "1 to min(N, D)", "all N", kTable2, always, upToStages},
      {"gems", "1", "all N", kTable2, always,
       [](const Sizes &) { return Interval(1, 1); }},
      {"chimera", "D-D/p+1 to D", "D even, D divides N, b >= f", kTable3,
       [](const Sizes &s) {
         return isOneByOne(s.options.concatenation) && isEven(s) &&
                inUnits(s) && s.backward >= s.forward;
       },
       [](const Sizes &s) {
         return Interval(s.stages - s.stages / s.options.pipelines + 1,
                         s.stages);
       }},
      {"chimera", "3D/2+1 to 2D",
       "doubling, D even, 2D divides N, p = 2, b >= f", kMeasured,
       [](const Sizes &s) {
         return (isDoubling(s) || isFineTuned(s)) && s.options.pipelines == 2;
       },
       [](const Sizes &s) {
         return Interval(3 * s.stages / 2 + 1, 2 * s.stages);
       }},
      {"chimera", "2(D-D/p+1) to 2D",
       "doubling, D even, 2D divides N, p > 2, b >= f", kMeasured,
       [](const Sizes &s) {
         return (isDoubling(s) || isFineTuned(s)) && s.options.pipelines > 2;
       },
       [](const Sizes &s) {
         return Interval(2 * (s.stages - s.stages / s.options.pipelines + 1),
                         2 * s.stages);
       }},
      {"chimera", "p = 2: ceil(3D/4+1/2) to D, p > 2: D-D/p+1 to D",
       "halving, D even, D divides N, b >= f", kMeasured, isHalving,
       [](const Sizes &s) {
         int64_t p = s.options.pipelines;
         return Interval(p == 2 ? (3 * s.stages / 2 + 2) / 2
                                : s.stages - s.stages / p + 1,
                         s.stages);
       }},
      {"pipedream", "1 to D", "all N", kTable2, always, upToStages},
      {"pipedream-2bw", "1 to D", "all N", kTable2, always, upToStages},
  });
  return all;
}

std::optional<Sizes> sizesOf(const Problem &problem,
                             const SchemeOptions &options) {
  if (problem.splitBackward || problem.workers == 0)
    return std::nullopt;
  std::optional<Sizes> sizes;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    auto stage = static_cast<int32_t>(s);
    Recompute how = problem.recomputeOf(stage);
    const StageCost &cost = problem.stages[s];
    int64_t again = how == Recompute::Fused ? cost.recompute : 0;
    Sizes own{options,
              static_cast<int64_t>(problem.stages.size()),
              problem.microBatches(),
              cost.forward,
              cost.backward + again,
              how == Recompute::Fused};
    int64_t messages = problem.transfer(problem.link, stage) +
                       problem.transfer(problem.link.send, stage) +
                       problem.transfer(problem.link.receive, stage);
    if (how == Recompute::Early || messages != 0 || (sizes && *sizes != own))
      return std::nullopt;
    for (const Pipeline &pipeline : problem.pipelines)
      if (cost.backward % pipeline.backwardParts != 0 ||
          again % pipeline.backwardParts != 0)
        return std::nullopt;
    sizes = own;
  }
  return sizes;
}

template <typename Formula>
static const Formula *find(std::span<const Formula> formulas,
                           const Scheme &scheme, const Sizes &sizes) {
  for (const Formula &formula : formulas)
    if (std::string_view(formula.scheme) == scheme.name && formula.holds(sizes))
      return &formula;
  return nullptr;
}

const BubbleFormula *findBubbleFormula(const Scheme &scheme,
                                       const Sizes &sizes) {
  return find(bubbleFormulas(), scheme, sizes);
}

const PeakFormula *findPeakFormula(const Scheme &scheme, const Sizes &sizes) {
  return sizes.recomputed ? nullptr : find(peakFormulas(), scheme, sizes);
}

} // namespace chimera::schedule
