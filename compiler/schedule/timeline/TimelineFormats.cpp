//===- TimelineFormats.cpp - The output formats of timelines --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/TimelineFormats.h"

#include "compiler/schedule/timeline/ChromeTrace.h"
#include "compiler/schedule/timeline/Html.h"
#include "compiler/schedule/timeline/Svg.h"
#include "compiler/schedule/timeline/Text.h"

#include <array>

namespace chimera::schedule {

std::span<const TimelineFormat> timelineFormats() {
  static constexpr std::array<TimelineFormat, 4> all = {{
      {"text", "the grid of the Chimera paper", renderText,
       renderTextSideBySide},
      {"svg", "a picture", renderSvg, renderSvgSideBySide},
      {"html", "a page for a browser: zoom, pan and look at actions",
       renderHtml, renderHtmlSideBySide},
      {"chrome-trace", "JSON for ui.perfetto.dev or chrome://tracing",
       renderChromeTrace, renderChromeTraceSideBySide},
  }};
  return all;
}

} // namespace chimera::schedule
