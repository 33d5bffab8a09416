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
bool isDoubling(const Sizes &s) {
  return s.options.concatenation == Concatenation::FineTunedDoubling;
}
bool isEven(const Sizes &s) { return s.stages % 2 == 0; }
bool inUnits(const Sizes &s) { return s.microBatches % s.stages == 0; }
bool inPairsOfUnits(const Sizes &s) {
  return s.microBatches % (2 * s.stages) == 0;
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

} // namespace

std::span<const BubbleFormula> bubbleFormulas() {
  static constexpr std::array<BubbleFormula, 12> all = {{
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
       "doubling, D even, 2D divides N, p = 2, b = 2f", kTable2,
       [](const Sizes &s) {
         return isDoubling(s) && isEven(s) && inPairsOfUnits(s) &&
                s.options.pipelines == 2 && s.backward == 2 * s.forward;
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
       "idle = (h-2)(max((f+b)/2, b-f) + (U-1) max(0, b-2f)), h = 2D/p, "
       "N = 2DU",
       "doubling, D even, 2D divides N, b >= f", kMeasured,
       [](const Sizes &s) {
         return isDoubling(s) && isEven(s) && inPairsOfUnits(s) &&
                s.backward >= s.forward;
       },
       [](const Sizes &s) {
         int64_t f = s.forward, b = s.backward;
         int64_t h = 2 * s.stages / s.options.pipelines;
         int64_t u = s.microBatches / (2 * s.stages);
         int64_t twice =
             (h - 2) * (std::max(f + b, 2 * (b - f)) +
                        2 * (u - 1) * std::max<int64_t>(0, b - 2 * f));
         return ratio(twice, 2 * s.microBatches * (f + b));
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
  }};
  return all;
}

std::span<const PeakFormula> peakFormulas() {
  using Interval = std::pair<int64_t, int64_t>;
  static constexpr std::array<PeakFormula, 5> all = {{
      {"gpipe", "N", "all N", kTable2, always,
       [](const Sizes &s) { return Interval(s.microBatches, s.microBatches); }},
      {"1f1b", "1 to min(N, D)", "all N", kTable2, always,
       [](const Sizes &s) {
         return Interval(1, std::min(s.microBatches, s.stages));
       }},
      {"gems", "1", "all N", kTable2, always,
       [](const Sizes &) { return Interval(1, 1); }},
      {"chimera", "D-D/p+1 to D", "D even, D divides N, b >= f", kTable3,
       [](const Sizes &s) {
         return isDirect(s) && isEven(s) && inUnits(s) &&
                s.backward >= s.forward;
       },
       [](const Sizes &s) {
         return Interval(s.stages - s.stages / s.options.pipelines + 1,
                         s.stages);
       }},
      {"chimera", "3D/2+1 to 2D",
       "doubling, D even, 2D divides N, p = 2, b >= f", kMeasured,
       [](const Sizes &s) {
         return isDoubling(s) && isEven(s) && inPairsOfUnits(s) &&
                s.options.pipelines == 2 && s.backward >= s.forward;
       },
       [](const Sizes &s) {
         return Interval(3 * s.stages / 2 + 1, 2 * s.stages);
       }},
  }};
  return all;
}

std::optional<Sizes> sizesOf(const Problem &problem,
                             const SchemeOptions &options) {
  const StageCost &first = problem.stages.front();
  if (problem.splitBackward || problem.workers == 0)
    return std::nullopt;
  for (size_t s = 0; s < problem.stages.size(); ++s)
    if (problem.stages[s].forward != first.forward ||
        problem.stages[s].backward != first.backward ||
        problem.transfer(static_cast<int32_t>(s)) != 0)
      return std::nullopt;
  return Sizes{options, static_cast<int64_t>(problem.stages.size()),
               problem.microBatches(), first.forward, first.backward};
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
  return find(peakFormulas(), scheme, sizes);
}

} // namespace chimera::schedule
