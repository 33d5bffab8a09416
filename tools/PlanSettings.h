//===- PlanSettings.h - Options of chimera-plan -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_PLANSETTINGS_H
#define CHIMERA_TOOLS_PLANSETTINGS_H

#include "compiler/planner/search/Space.h"
#include "dialect/Chimera.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace chimera {

/// The command line of chimera-plan.
struct PlanSettings {
  std::string input; ///< "-" for standard input
  int64_t batch;     ///< from 1 to 2^31 - 1
  // Output files. "-" is standard output; empty if not given.
  std::string output, json, svg;
  uint32_t pick;   ///< number, from 1, of the plan to write to `output`
  uint32_t top;    ///< number of plans in the table
  bool allColumns; ///< whether the table has all columns
  /// Numbers, from 1, of the two plans of the table to compare. May be empty.
  std::vector<uint32_t> compared;
  std::string model, machine, training; ///< names of ops; empty: the only one
  std::optional<int64_t> devices;       ///< none: all devices of the machine
  plan::Pins pins;
  std::optional<DataType> weights, activations;
  std::vector<std::string> costsFrom;
  uint32_t threads; ///< at least 1

  /// The number of plans to rank: the largest of `top`, `pick` and `compared`.
  uint32_t planCount() const {
    uint32_t most = std::max(top, pick);
    for (uint32_t number : compared)
      most = std::max(most, number);
    return most;
  }
};

/// Reads the command line into `settings`. Ends the process if an option is
/// unknown or malformed, and for --help and --version. Returns an error message
/// if a value of an option is not allowed, else an empty string.
std::string readPlanSettings(int argc, char **argv, PlanSettings &settings);

/// An error message if a pinned value (`question.pins`) is impossible in every
/// plan. It lists the possible values. Empty if all pinned values are possible.
std::string errorOfPins(const plan::Question &question);

} // namespace chimera

#endif // CHIMERA_TOOLS_PLANSETTINGS_H
