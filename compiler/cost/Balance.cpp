//===- Balance.cpp - Layers cut into balanced ranges ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// best[k][i] is the least possible time of the longest of k+1 ranges that cover
// the first i layers:
//
//   best[k][i] = min over j < i of max(best[k-1][j], time k of layers j … i-1)
//
// The second argument of max decreases as j grows. So a j is never better than
// a larger j' if best[k-1][j'] <= best[k-1][j]. Call j a candidate if no larger
// j' has a smaller best[k-1][j']. From one candidate to the next, best[k-1]
// never decreases. So the minimum is at the first candidate at which best[k-1]
// is at least the second argument, or at the candidate before it. As i grows,
// this first candidate (`crossing` in the code) only moves to larger j.
//
// If a layer takes the same time in all stages, best[k-1] never decreases as j
// grows, so all j are candidates. If some stages are recomputed, best[k-1] may
// decrease: a long layer alone in a recomputed stage may take more time than
// the same layer with its neighbours in the previous stage.
//
// First, a bisection finds a small time limit for which some cut has no range
// that takes longer. A greedy pass tests each limit. In the best cut, no range
// takes longer than this limit either. So the end of range k lies in a window:
// late enough that the later ranges can cover the rest, and early enough that
// the ranges up to k can reach it. Values of best are computed only for ends in
// windows. With n ranges, these are at most n times the number of layers, and
// far fewer if the ranges are long or if n is almost the number of layers.
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Balance.h"

#include <algorithm>
#include <limits>

namespace chimera::cost {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class Balancer {
public:
  explicit Balancer(const std::vector<const PrefixSums *> &costs)
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
  /// The largest and the smallest end of range k for which no range must be
  /// empty.
  int32_t mostEnd(int32_t k) const { return layers - (ranges - 1 - k); }
  static int32_t leastEnd(int32_t k) { return k + 1; }

  /// The largest end of range k, if range k begins at `begin` and takes at most
  /// `limit`. It is `begin` if even one layer takes longer.
  int32_t lastEnd(int32_t k, int32_t begin, int64_t limit) const {
    const PrefixSums &prefix = *costs[k];
    auto end = std::upper_bound(prefix.begin() + begin, prefix.end(),
                                prefix[begin] + limit);
    return static_cast<int32_t>(end - prefix.begin()) - 1;
  }

  /// The smallest begin of range k, if range k ends at `end` and takes at most
  /// `limit`.
  int32_t firstBegin(int32_t k, int32_t end, int64_t limit) const {
    const PrefixSums &prefix = *costs[k];
    auto begin = std::lower_bound(prefix.begin(), prefix.begin() + end,
                                  prefix[end] - limit);
    return static_cast<int32_t>(begin - prefix.begin());
  }

  /// True if the ranges cover all layers when each, one after the other, is
  /// made as long as the limit allows.
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

  /// A time limit for which some cut has no range that takes longer. The limit
  /// is often the time of the longest range of the best cut.
  int64_t someLongest() const {
    int64_t least = kNever, most = 0;
    for (const PrefixSums *prefix : costs) {
      least = std::min(least, prefix->back());
      most = std::max(most, prefix->back());
    }
    int64_t below = least / ranges - 1, above = most;
    // A limit that is slightly too large hardly changes the windows, because
    // they end at whole layers.
    const int64_t exact = most / layers / 64;
    while (above - below > 1 + exact) {
      int64_t limit = below + (above - below) / 2;
      (fits(limit) ? above : below) = limit;
    }
    return above;
  }

  /// Sets `lowest` and `highest`: the window in which the end of each range is,
  /// for all cuts in which no range takes more than `limit`.
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

  /// Computes best[k] (see the top of the file) for the ends in the window of
  /// range k. `before` has best[k-1] for the ends in the window of range k-1.
  /// Appends the best begin of range k for each end to `from`.
  std::vector<int64_t> bestOf(int32_t k, const std::vector<int64_t> &before,
                              std::vector<int32_t> &from) const {
    const PrefixSums &prefix = *costs[k];
    const int32_t low = lowest[k - 1], high = highest[k - 1];
    // An end j after the window of range k-1 exceeds the limit. The time kNever
    // keeps such a j from being chosen.
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
        // Layer i-1 alone takes more than the limit in range k, so range k
        // cannot end here.
        best.push_back(kNever);
        from.push_back(low);
        continue;
      }
      crossing = std::min(crossing, candidates.size() - 1);
      auto time = [&](size_t c) { return prefix[i] - prefix[candidates[c]]; };
      while (crossing + 1 < candidates.size() &&
             beforeOf(candidates[crossing]) < time(crossing))
        ++crossing;
      // The minimum is at the crossing or at the candidate before it.
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

  const std::vector<const PrefixSums *> &costs;
  int32_t ranges, layers;
  std::vector<int32_t> lowest, highest; ///< window of each range's end
};

} // namespace

std::vector<int32_t>
balancedCuts(const std::vector<const PrefixSums *> &costs) {
  return Balancer(costs).run();
}

} // namespace chimera::cost
