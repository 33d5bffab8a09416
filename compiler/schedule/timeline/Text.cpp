//===- Text.cpp - Timelines as text ---------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Text.h"

#include "compiler/schedule/timeline/Grid.h"

namespace chimera::schedule {

std::string renderText(std::span<const Timeline> timelines) {
  std::string text;
  for (const Timeline &timeline : timelines) {
    text += timeline.title + "\n";
    text += renderGrid(timeline);
    if (std::string marks = describeMarks(timeline); !marks.empty())
      text += "(" + marks + ")\n";
    text += renderSummary(timeline.problem, timeline.timing, timeline.slots,
                          timeline.scale);
    if (std::string occupied = describeOccupations(timeline); !occupied.empty())
      text += occupied + "\n";
    if (std::string steps =
            describeSteps(timeline.problem, timeline.schedule, timeline.scale);
        !steps.empty())
      text += steps + "\n";
    if (timeline.syncAndUpdate)
      text += describeStep(timeline) + "\n";
  }
  return text;
}

} // namespace chimera::schedule
