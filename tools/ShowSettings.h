//===- ShowSettings.h - The options of chimera-show -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_SHOWSETTINGS_H
#define CHIMERA_TOOLS_SHOWSETTINGS_H

#include "compiler/schedule/timeline/Timeline.h"
#include "passes/report/Times.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace chimera {

/// The command line of chimera-show.
struct ShowSettings {
  std::string input; ///< "-" for standard input, empty with expressions
  std::vector<std::string> expressions;
  bool hasZeroBubbleNotation = false; ///< of an order file
  bool printsComparison = false;      ///< prints a line for each pipeline
  bool printsReport = false;          ///< prints a table for each pipeline
  /// The files to write. "-" is standard output. Empty if the file is not
  /// wanted.
  std::string svg, pdf, html, trace, json, csv, torchCsv, description;
  schedule::Picture picture;          ///< how --svg and --pdf look
  std::string measured;               ///< the trace of a run; empty for none
  std::vector<std::string> costsFrom; ///< profiles of runs
  std::optional<int64_t> copy;
  std::optional<int32_t> activationCap; ///< of each worker
  size_t width = 0; ///< characters in a line; 0 for the terminal's
  bool showsSlots = false;

  /// The times that the command line states (Passes.td, timeOptions). Empty or
  /// 0 if it states none.
  std::string costs, unit;
  Decimal forward, backward, weightGradient, update;
  std::vector<std::pair<std::string, Decimal>>
      messages; ///< with the names of their options

  /// hasTimes: whether the command line states any times. hasTimesOfActions:
  /// whether it states times of actions.
  bool hasTimes() const;
  bool hasTimesOfActions() const;
  /// Whether the command line has options about a schedule.
  bool isAboutSchedule() const;
};

/// Reads the command line. Returns the exit status if the process must end at
/// once: 0 after --help, 1 after an error message.
std::optional<int> readShowSettings(int argc, char **argv,
                                    ShowSettings &settings);

} // namespace chimera

#endif // CHIMERA_TOOLS_SHOWSETTINGS_H
