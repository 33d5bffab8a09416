//===- PlanSettings.h - What chimera-plan is asked for ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_PLANSETTINGS_H
#define CHIMERA_TOOLS_PLANSETTINGS_H

#include "compiler/plan/Space.h"
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
  // Files to write, "-" for standard output; empty where none is asked for.
  std::string output, json, svg;
  uint32_t pick; ///< the plan of `output`, from 1
  uint32_t top;  ///< plans of the table
  /// Two plans of the table to compare, from 1; or none.
  std::vector<uint32_t> compared;
  std::string model, machine, training; ///< names, empty for the only one
  std::optional<int64_t> devices;       ///< the machine's unless given
  plan::Pins pins;
  std::optional<DataType> weights, activations;
  std::vector<std::string> costsFrom;
  uint32_t threads; ///< at least 1

  /// How many plans the table has.
  uint32_t shown() const {
    uint32_t most = std::max(top, pick);
    for (uint32_t number : compared)
      most = std::max(most, number);
    return most;
  }
};

/// Reads the command line. Ends the process where an option is not known, is
/// not what it has to be, or asks for help. Empty, or what is wrong with the
/// values of an option.
std::string readPlanSettings(int argc, char **argv, PlanSettings &settings);

/// Empty, or which pinned value no plan of the question can have, and which
/// ones are possible.
std::string faultOfPins(const plan::Question &question);

} // namespace chimera

#endif // CHIMERA_TOOLS_PLANSETTINGS_H
