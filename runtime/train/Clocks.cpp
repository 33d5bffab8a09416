//===- Clocks.cpp - Differences between the ranks' clocks -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Clocks.h"

#include "runtime/control/Messages.h"
#include "runtime/interpreter/Status.h"
#include "runtime/random/Mix.h"
#include "runtime/system/HostId.h"

#include <climits>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

/// The number of round trips to each rank.
static constexpr int kRoundTrips = 32;

Clock chimera::runtime::clockOfHost() {
  std::string boot = bootId();
  // A container may have a clock of its own, so the identity includes the time
  // namespace.
  char space[64];
  ssize_t size = readlink("/proc/self/ns/time", space, sizeof(space));
  if (size > 0)
    boot.append(space, static_cast<size_t>(size));
  return {boot.empty() ? 0 : digestOf(std::as_bytes(std::span(boot))),
          steadyNanoseconds};
}

/// The offset of the clock of `rank` from `clock`, the root's clock. Called at
/// the root.
static ClockOffset compareWith(Control &control, uint32_t rank,
                               std::chrono::milliseconds timeout,
                               const Clock &clock) {
  ClockOffset offset{.ahead = 0, .error = INT64_MAX, .isShared = false};
  for (int i = 0; i < kRoundTrips; ++i) {
    const int64_t asked = clock.now();
    sendValue(control, rank, asked, timeout);
    const auto there = receiveValue<int64_t>(control, rank, timeout);
    const int64_t half = (clock.now() - asked + 1) / 2;
    if (half < offset.error) {
      offset.error = half;
      offset.ahead = there - (asked + half);
    }
  }
  return offset;
}

std::vector<ClockOffset>
chimera::runtime::gatherClocks(Control &control, uint32_t root,
                               std::chrono::milliseconds timeout,
                               const Clock &clock) {
  const std::vector<uint64_t> numbers =
      gatherValues(control, root, clock.identity, timeout);
  if (control.rank() != root) {
    if (receiveValue<uint8_t>(control, root, timeout))
      return {};
    for (int i = 0; i < kRoundTrips; ++i) {
      receiveValue<int64_t>(control, root, timeout);
      sendValue(control, root, clock.now(), timeout);
    }
    return {};
  }
  std::vector<ClockOffset> offsets(control.ranks());
  for (uint32_t rank = 0; rank < control.ranks(); ++rank) {
    if (rank == root)
      continue;
    const uint8_t isShared =
        clock.identity != 0 && numbers[rank] == clock.identity;
    sendValue(control, rank, isShared, timeout);
    if (!isShared)
      offsets[rank] = compareWith(control, rank, timeout, clock);
  }
  return offsets;
}
