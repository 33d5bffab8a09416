//===- Differences.cpp - Differences between run and prediction -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Differences.h"

#include "compiler/schedule/text/Magnitude.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace chimera::schedule {

static std::string roundedTimeOf(const TimeScale &scale, int64_t time) {
  return roundedTime(static_cast<double>(time), scale);
}

/// "P1".
static std::string workerOf(const Difference &of) {
  return "P" + std::to_string(of.ref.worker);
}

/// "F3 of stage 1".
static std::string actionOf(const Timeline &timeline, const Difference &of) {
  const Action &action = timeline.schedule.workers[of.ref.worker][of.ref.index];
  return cellOf(timeline, action) + " of stage " + std::to_string(action.stage);
}

/// "8 ms".
static std::string changeOf(const Timeline &timeline, const Difference &of) {
  return roundedTimeOf(timeline.scale, std::abs(of.change()));
}

static int64_t durationOf(const NanosecondStep &step, ActionRef ref) {
  return step.timing.ends[ref.worker][ref.index] -
         step.timing.starts[ref.worker][ref.index];
}

static std::string describeDuration(const Timeline &timeline,
                                    const Difference &of) {
  return actionOf(timeline, of) + " on " + workerOf(of);
}

static int64_t waitOf(const NanosecondStep &step, ActionRef ref) {
  return step.waitBefore(ref.worker, ref.index);
}

/// True if the worker updates weights between the previous action and the
/// action at `ref`. This happens only if steps overlap.
static bool updatesBefore(const Timeline &timeline, ActionRef ref) {
  if (!timeline.syncAndUpdate || ref.index == 0)
    return false;
  const std::vector<int64_t> &starts = timeline.timing.starts[ref.worker];
  return std::ranges::any_of(timeline.syncAndUpdate->work[ref.worker],
                             [&](const SyncAndUpdate::Work &work) {
                               return work.isUpdate() &&
                                      work.begin >= starts[ref.index - 1] &&
                                      work.begin < starts[ref.index];
                             });
}

static std::string describeWait(const Timeline &timeline,
                                const Difference &of) {
  std::string change = changeOf(timeline, of);
  const char *sense = of.change() > 0 ? " longer" : " less";
  if (of.ref.index == std::ssize(timeline.schedule.workers[of.ref.worker]))
    return workerOf(of) + " takes " + change + sense + " after its actions";
  if (updatesBefore(timeline, of.ref))
    return workerOf(of) + " takes " + change + sense +
           ", its updates included, before " + actionOf(timeline, of);
  return workerOf(of) + " waits " + change + sense + " before " +
         actionOf(timeline, of);
}

static int64_t startOf(const NanosecondStep &step, ActionRef ref) {
  return step.timing.starts[ref.worker][ref.index];
}

static std::string describeStart(const Timeline &timeline,
                                 const Difference &of) {
  return actionOf(timeline, of) + " on " + workerOf(of) + " starts " +
         changeOf(timeline, of) + (of.change() > 0 ? " later" : " earlier");
}

std::span<const DifferenceKind> differenceKinds() {
  static constexpr std::array<DifferenceKind, 3> all = {{
      {"durations", durationOf, false, true, describeDuration},
      {"waits", waitOf, true, false, describeWait},
      {"starts", startOf, false, false, describeStart},
  }};
  return all;
}

std::vector<Difference> largestDifferences(const DifferenceKind &kind,
                                           const NanosecondStep &predicted,
                                           const NanosecondStep &measured,
                                           size_t most) {
  std::vector<Difference> all;
  for (size_t w = 0; w < predicted.timing.ends.size(); ++w)
    for (size_t i = 0;
         i < predicted.timing.ends[w].size() + (kind.includesEndOfStep ? 1 : 0);
         ++i) {
      ActionRef ref{static_cast<int32_t>(w), static_cast<int32_t>(i)};
      Difference difference{ref, kind.time(predicted, ref),
                            kind.time(measured, ref)};
      if (difference.change() != 0)
        all.push_back(difference);
    }
  std::ranges::stable_sort(all, std::greater(), [](const Difference &of) {
    return std::abs(of.change());
  });
  if (all.size() > most)
    all.resize(most);
  return all;
}

std::string describe(const Timeline &timeline, const DifferenceKind &kind,
                     const Difference &difference) {
  auto [ref, predicted, measured] = difference;
  return kind.text(timeline, difference) + ": " +
         describeTimes(timeline.scale, predicted, measured) +
         (kind.hasRatio ? describeRatio(predicted, measured) : "");
}

std::string describeTimes(const TimeScale &scale, int64_t predicted,
                          int64_t measured) {
  return roundedTimeOf(scale, measured) + " measured, " +
         roundedTimeOf(scale, predicted) + " predicted";
}

std::string describeRatio(int64_t predicted, int64_t measured) {
  if (predicted == 0)
    return {};
  char ratio[64];
  std::snprintf(ratio, sizeof ratio, ", %+.1f %%",
                100 * static_cast<double>(measured - predicted) /
                    static_cast<double>(predicted));
  return ratio;
}

} // namespace chimera::schedule
