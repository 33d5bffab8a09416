//===- TimelineFormats.h - The output formats of timelines ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TIMELINEFORMATS_H
#define CHIMERA_COMPILER_SCHEDULE_TIMELINEFORMATS_H

#include "compiler/schedule/timeline/SideBySide.h"

namespace chimera::schedule {

/// An output format of timelines. The parser, the help text and the tests all
/// read `timelineFormats()`.
struct TimelineFormat {
  const char *name;
  const char *summary;
  /// One document that contains all timelines.
  std::string (*render)(std::span<const Timeline> timelines);
  /// One document that contains one timeline and a measured run (SideBySide.h).
  std::string (*renderSideBySide)(const SideBySide &both);
};

std::span<const TimelineFormat> timelineFormats();

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TIMELINEFORMATS_H
