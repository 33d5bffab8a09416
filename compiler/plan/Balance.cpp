//===- Balance.cpp - Ranges whose longest takes least ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// best[k][i] is the least that the longest of k+1 ranges over the first i
// layers takes:
//
//   best[k][i] = min over j < i of max(best[k-1][j], time k of layers j … i-1)
//
// The time shrinks with j. Of two j with the same or a larger best[k-1] the
// smaller is therefore no better, so candidates are those j with no smaller
// best[k-1] behind them. Over the candidates best[k-1] grows: the minimum is
// where it crosses the time, and the crossing moves up with i only.
//
// Where all stages take the same for a layer, best[k-1] grows with j by itself.
// Where some are recomputed it may not: a long layer alone in a stage that is
// recomputed may take more than the layer and its neighbours in the stage
// before.
//
// Some cut is known before, by going through the layers with a limit on each
// range. No range of the best cut takes more than that cut's longest, so each
// end is within a window: from the layers that the ranges behind can take to
// those that the ranges up to it can. Only ends in windows are computed. Their
// number is ranges times layers at most, and far less where ranges are long or
// nearly as many as layers.
//
//===----------------------------------------------------------------------===//

#include "compiler/plan/Balance.h"

#include <algorithm>
#include <limits>

namespace chimera::plan {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class Balancer {
public:
  explicit Balancer(const std::vector<const Prefix *> &costs)
      : costs(costs), ranges(static_cast<int32_t>(costs.size())),
        layers(static_cast<int32_t>(costs.front()->size()) - 1) {}

  std::vector<int32_t> run() {
    setWindows(someLongest());
    std::vector<std::vector<int32_t>> from(ranges);
    std::vector<int64_t> before;
    for (int32_t i = lowest[0]; i <= highest[0]; ++i)
      before.push_back((*costs[0])[i]);
    for (int32_t k = 1; k < ranges; ++k)
      before = bestOf(k, before, from[k]);
    std::vector<int32_t> ends(ranges);
    int32_t end = layers;
    for (int32_t k = ranges; k-- > 0;) {
      ends[k] = end;
      if (k > 0)
        end = from[k][end - lowest[k]];
    }
    return ends;
  }

private:
  /// The largest and smallest end that range k may have by the number of ranges
  /// before and behind it.
  int32_t mostEnd(int32_t k) const { return layers - (ranges - 1 - k); }
  static int32_t leastEnd(int32_t k) { return k + 1; }

  /// The last end, at least `begin`, of a range k from `begin` that takes at
  /// most `limit`.
  int32_t lastEnd(int32_t k, int32_t begin, int64_t limit) const {
    const Prefix &prefix = *costs[k];
    auto end = std::upper_bound(prefix.begin() + begin, prefix.end(),
                                prefix[begin] + limit);
    return static_cast<int32_t>(end - prefix.begin()) - 1;
  }

  /// The first begin of a range k to `end` that takes at most `limit`.
  int32_t firstBegin(int32_t k, int32_t end, int64_t limit) const {
    const Prefix &prefix = *costs[k];
    auto begin = std::lower_bound(prefix.begin(), prefix.begin() + end,
                                  prefix[end] - limit);
    return static_cast<int32_t>(begin - prefix.begin());
  }

  /// Whether ranges that are as long as the limit allows, one after the other,
  /// take all layers.
  bool fits(int64_t limit) const {
    int32_t end = 0;
    for (int32_t k = 0; k < ranges; ++k) {
      int32_t next = std::min(lastEnd(k, end, limit), mostEnd(k));
      if (next == end)
        return false;
      end = next;
    }
    return end == layers;
  }

  /// What the longest range of some cut takes, often of the best.
  int64_t someLongest() const {
    int64_t least = kNever, most = 0;
    for (const Prefix *prefix : costs) {
      least = std::min(least, prefix->back());
      most = std::max(most, prefix->back());
    }
    int64_t below = least / ranges - 1, above = most;
    // A window depends on the limit in whole layers.
    const int64_t exact = most / layers / 64;
    while (above - below > 1 + exact) {
      int64_t limit = below + (above - below) / 2;
      (fits(limit) ? above : below) = limit;
    }
    return above;
  }

  /// Sets the window of each range's end, of cuts of which no range takes more
  /// than `limit`.
  void setWindows(int64_t limit) {
    lowest.resize(ranges);
    highest.resize(ranges);
    int32_t end = 0;
    for (int32_t k = 0; k < ranges; ++k) {
      end = lastEnd(k, end, limit);
      highest[k] = std::min(end, mostEnd(k));
    }
    end = layers;
    for (int32_t k = ranges; k-- > 0;) {
      lowest[k] = std::max(end, leastEnd(k));
      end = firstBegin(k, end, limit);
    }
  }

  /// best[k] within its window, from best[k-1] within its own; where the last
  /// range begins goes to `from`.
  std::vector<int64_t> bestOf(int32_t k, const std::vector<int64_t> &before,
                              std::vector<int32_t> &from) const {
    const Prefix &prefix = *costs[k];
    const int32_t low = lowest[k - 1], high = highest[k - 1];
    // Beyond the window nothing is best.
    auto beforeOf = [&](int32_t j) {
      return j > high ? kNever : before[j - low];
    };
    std::vector<int64_t> best;
    std::vector<int32_t> candidates;
    size_t crossing = 0;
    int32_t next = low;
    for (int32_t i = lowest[k]; i <= highest[k]; ++i) {
      for (; next < i && next <= high + 1; ++next) {
        while (!candidates.empty() &&
               beforeOf(candidates.back()) > beforeOf(next))
          candidates.pop_back();
        candidates.push_back(next);
      }
      if (candidates.empty()) {
        // The layer before `i` alone takes more than the limit.
        best.push_back(kNever);
        from.push_back(low);
        continue;
      }
      crossing = std::min(crossing, candidates.size() - 1);
      auto time = [&](size_t c) { return prefix[i] - prefix[candidates[c]]; };
      while (crossing + 1 < candidates.size() &&
             beforeOf(candidates[crossing]) < time(crossing))
        ++crossing;
      // The minimum is at the crossing, or at the candidate before it.
      int64_t least = std::max(beforeOf(candidates[crossing]), time(crossing));
      size_t chosen = crossing;
      if (crossing > 0 && time(crossing - 1) <= least) {
        chosen = crossing - 1;
        least = time(chosen);
      }
      best.push_back(least);
      from.push_back(candidates[chosen]);
    }
    return best;
  }

  const std::vector<const Prefix *> &costs;
  int32_t ranges, layers;
  std::vector<int32_t> lowest, highest; ///< ends of each range
};

} // namespace

std::vector<int32_t> balancedCuts(const std::vector<const Prefix *> &costs) {
  return Balancer(costs).run();
}

} // namespace chimera::plan
