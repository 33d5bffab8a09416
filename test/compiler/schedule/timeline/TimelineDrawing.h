//===- TimelineDrawing.h - A picture to test --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_TIMELINE_TIMELINEDRAWING_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_TIMELINE_TIMELINEDRAWING_H

#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/Svg.h"
#include "test/compiler/schedule/Schedules.h"

#include <regex>
#include <string>

namespace chimera::schedule {

struct TimelineDrawing {
  Case c;
  Timing timing;
  std::string svg;
};

inline TimelineDrawing draw(Case c, const std::string &title = "title",
                            const Picture &picture = {}) {
  TimelineDrawing drawing{std::move(c), {}, {}};
  drawing.timing = simulate(drawing.c.problem, drawing.c.schedule);
  Timeline timeline{"p", title, drawing.c.problem, drawing.c.schedule,
                    drawing.timing};
  timeline.picture = picture;
  drawing.svg = renderSvg({&timeline, 1});
  return drawing;
}

inline size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

/// All texts of a picture in the class `style`, separated by blanks.
inline std::string textsWithClass(const std::string &svg,
                                  const std::string &style) {
  std::regex line("<text class=\"" + style + "\"[^>]*>([^<]*)</text>");
  std::string found;
  for (std::sregex_iterator i(svg.begin(), svg.end(), line), end; i != end; ++i)
    found += (found.empty() ? "" : " ") + (*i)[1].str();
  return found;
}

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_TIMELINE_TIMELINEDRAWING_H
