//===- SumOverlap.cpp - What computation hides of an all-reduce -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/SumOverlap.h"

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/control/Messages.h"
#include "runtime/device/Host.h"
#include "runtime/interpreter/Status.h"

#include <algorithm>
#include <vector>

using namespace chimera::runtime;

namespace {
/// Some arithmetic that no compiler leaves out, and that needs no memory.
void compute(int64_t turns) {
  volatile uint64_t sink = 1;
  uint64_t x = sink;
  for (int64_t i = 0; i < turns; ++i)
    x = x * 6364136223846793005u + 1442695040888963407u;
  sink = x;
}

/// Sums, computes, or both, with all ranks at once.
class Rounds {
public:
  Rounds(Control &control, Channels &channels, const ReduceGroup &group,
         uint64_t bytes, int64_t ahead, std::chrono::milliseconds timeout)
      : control(control), channels(channels), group(group),
        values(bytes / sizeof(float)), ahead(ahead), timeout(timeout) {}

  /// What a round took the slowest rank, in nanoseconds, at all ranks: an
  /// all-reduce or none, and so many turns of arithmetic meanwhile.
  int64_t run(bool sums, int64_t turns) {
    sleepUntil(agreeOnBegin(control, std::chrono::milliseconds(5), timeout) +
               ahead);
    const int64_t begin = steadyNanoseconds();
    std::unique_ptr<Request> request;
    if (sums) {
      const Bytes sum = std::as_writable_bytes(std::span(values));
      request =
          channels.startAllReduce(group, ElementType::Float32, {sum}, sum);
    }
    channels.computing();
    compute(turns);
    if (request)
      channels.wait(hostQueue(), std::move(request), timeout);
    int64_t most = steadyNanoseconds() - begin;
    for (int64_t other : gatherValues(control, 0, most, timeout))
      most = std::max(most, other);
    if (control.rank() > 0)
      return receiveValue<int64_t>(control, 0, timeout);
    for (uint32_t rank = 1; rank < control.ranks(); ++rank)
      sendValue(control, rank, most, timeout);
    return most;
  }

private:
  Control &control;
  Channels &channels;
  const ReduceGroup &group;
  std::vector<float> values; ///< zeros, which stay so however often added
  const int64_t ahead;
  const std::chrono::milliseconds timeout;
};
} // namespace

double chimera::runtime::hiddenPart(Control &control, Channels &channels,
                                    const ReduceGroup &group, uint64_t bytes,
                                    int rounds, int64_t ahead,
                                    std::chrono::milliseconds timeout) {
  Rounds all(control, channels, group, bytes, ahead, timeout);
  all.run(/*sums=*/true, /*turns=*/0); // the first makes connections
  // Half as long again as the sum.
  constexpr int64_t kTurns = 1'000'000;
  const auto sum = static_cast<double>(all.run(true, 0));
  const auto some = static_cast<double>(all.run(false, kTurns));
  const auto turns = static_cast<int64_t>(1.5 * sum / some * kTurns);
  int64_t summed = INT64_MAX, computed = INT64_MAX, both = INT64_MAX;
  for (int round = 0; round < rounds; ++round) {
    summed = std::min(summed, all.run(true, 0));
    computed = std::min(computed, all.run(false, turns));
    both = std::min(both, all.run(true, turns));
  }
  return std::clamp(static_cast<double>(summed + computed - both) /
                        static_cast<double>(std::max<int64_t>(summed, 1)),
                    0., 1.);
}
