//===- SideBySide.cpp - Prediction beside measurement ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SideBySide.h"

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/TextTable.h"
#include "compiler/schedule/timeline/Differences.h"

namespace chimera::schedule {

SideBySide::SideBySide(const Timeline &timeline, NanosecondStep prediction,
                       MeasuredStep run)
    : timeline(timeline), prediction(std::move(prediction)),
      run(std::move(run)), predicted(timelineOf(timeline, this->prediction)),
      measured(timelineOf(timeline, this->run)) {}

std::string SideBySide::nameOfRun() const {
  std::string name = run.step ? "step " + std::to_string(*run.step) : "a step";
  if (run.overlaps()) {
    name = "the body that each worker repeats";
    if (run.step)
      name += (run.steps > 1 ? ", in steps " : ", in step ") +
              std::to_string(*run.step);
    for (int32_t later = 1; run.step && later < run.steps; ++later)
      name += " and " + std::to_string(*run.step + later);
  }
  if (run.copies > 1)
    name += " of copy " + std::to_string(run.copy) +
            (run.isSlowest ? ", the slowest of " : " of ") +
            std::to_string(run.copies);
  return name;
}

std::string SideBySide::noteOfRun() const {
  return run.sharedCores ? "ranks shared cores in this run, so actions and "
                           "waits took longer"
                         : "";
}

std::string SideBySide::describeStep() const {
  return "step: " +
         describeTimes(measured.scale, prediction.length(), run.length()) +
         describeRatio(prediction.length(), run.length());
}

static std::string workersOf(const SideBySide &both) {
  std::vector<std::vector<std::string>> rows = {
      {"worker", "step: predicted", "measured", "busy: predicted", "measured",
       "idle: predicted", "measured"}};
  auto time = [&](int64_t nanoseconds) {
    return roundedTime(static_cast<double>(nanoseconds), both.measured.scale);
  };
  for (size_t w = 0; w < both.prediction.timing.starts.size(); ++w) {
    std::vector<std::string> &row = rows.emplace_back();
    row.push_back("P" + std::to_string(w));
    auto add = [&](auto timeOf) {
      row.push_back(time(timeOf(both.prediction)));
      row.push_back(time(timeOf(both.run)));
    };
    add([&](const NanosecondStep &step) {
      return step.syncAndUpdate.ends[w] - step.begin(w);
    });
    add([&](const NanosecondStep &step) { return step.busy(w); });
    add([&](const NanosecondStep &step) { return step.idle(w); });
  }
  return textTable(rows, 1);
}

std::string renderTextSideBySide(const SideBySide &both) {
  constexpr size_t kMost = 5; // of each kind
  const std::string note = both.noteOfRun();
  std::string text = both.timeline.title + "\nmeasured: " + both.nameOfRun() +
                     "\n" + note + (note.empty() ? "" : "\n") + workersOf(both);
  for (const DifferenceKind &kind : differenceKinds()) {
    std::vector<Difference> found =
        largestDifferences(kind, both.prediction, both.run, kMost);
    text +=
        std::string(kind.name) +
        (found.empty() ? ": no differences\n" : ", the largest differences:\n");
    for (const Difference &difference : found)
      text += "  " + describe(both.measured, kind, difference) + "\n";
  }
  return text + both.describeStep() + "\n";
}

} // namespace chimera::schedule
