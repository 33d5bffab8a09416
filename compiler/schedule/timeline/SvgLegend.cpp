//===- SvgLegend.cpp - The legend of a picture ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgLegend.h"

#include "compiler/schedule/SvgText.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <algorithm>
#include <set>

namespace chimera::schedule::svg {

/// The width of an entry without its name, and of each character of the name.
static constexpr double kEntry = 46, kCharacter = 5.9;

double LegendEntry::width() const {
  return kEntry + kCharacter * static_cast<double>(name.size());
}

std::vector<LegendEntry> legendOf(const Timeline &timeline) {
  std::set<std::pair<size_t, bool>> kinds; // kind, and true for up
  for (const std::vector<Action> &row : timeline.schedule.workers)
    for (const Action &action : row)
      kinds.insert({static_cast<size_t>(action.kind),
                    timeline.problem.pipelines[action.pipeline].up});
  std::vector<LegendEntry> entries;
  for (auto [kind, up] : kinds)
    entries.push_back({classOf(kind, up), std::string(nameOfKind(kind)) +
                                              (up ? ", up" : ", down")});
  if (timeline.occupations && areAny(*timeline.occupations))
    entries.push_back({"message", "send or receive"});
  entries.push_back({"bubble", "bubble"});
  if (!timeline.schedule.bodies.empty())
    entries.push_back({"body", "repeated in each step"});
  if (timeline.syncAndUpdate) {
    bool areSums = std::ranges::any_of(
        timeline.syncAndUpdate->allReduces,
        [](const auto &allReduce) { return allReduce.end > allReduce.begin; });
    auto areAny = [&](bool updates) {
      return std::ranges::any_of(
          timeline.syncAndUpdate->work, [&](const auto &works) {
            return std::ranges::any_of(works,
                                       [&](const SyncAndUpdate::Work &work) {
                                         return work.isUpdate() == updates;
                                       });
          });
    };
    if (areSums)
      entries.push_back({"all-reduce", "all-reduce under way"});
    if (areAny(/*updates=*/false))
      entries.push_back(
          {"wait", areSums ? "wait for it" : "wait for all-reduce"});
    if (areAny(/*updates=*/true))
      entries.push_back({"update", "update"});
  }
  return entries;
}

double widthOf(const std::vector<LegendEntry> &entries) {
  double width = 0;
  for (const LegendEntry &entry : entries)
    width += entry.width();
  return width;
}

std::string drawLegend(const std::vector<LegendEntry> &entries, double y) {
  std::string svg;
  double x = 0;
  for (const LegendEntry &entry : entries) {
    svg += "<rect class=\"" + entry.style + "\" x=\"" + svgNumber(x + 0.5) +
           "\" y=\"" + svgNumber(y) +
           "\" width=\"22\" height=\"14\" rx=\"2\"/>\n" +
           text("note", x + 28, y + 11, entry.name);
    x += entry.width();
  }
  return svg;
}

} // namespace chimera::schedule::svg
