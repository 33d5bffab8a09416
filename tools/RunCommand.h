//===- RunCommand.h - What chimera-run does ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RUNCOMMAND_H
#define CHIMERA_TOOLS_RUNCOMMAND_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chimera {

/// The options of chimera-run, as its help explains them.
struct RunSettings {
  std::string program;
  std::string stages = "auto";
  std::string data;
  std::string save;
  std::string saveGradients;
  std::string log;
  std::string profile;
  std::string transport = "auto";
  std::string progress = "auto";
  std::string allReduce = "ordered";
  uint64_t steps = 10;
  uint32_t threads = 0;          ///< 0: an equal share of the cores
  std::optional<double> timeout; ///< seconds, 0: none
  double holdOut = 0.1;
  uint64_t evaluateBatches = 16;
  double unitNanoseconds = 0;
  bool sequential = false;
  bool checkReplicas = false;
  bool quiet = false;
};

/// What --stages, --transport, --progress and --all-reduce take.
std::vector<std::string> stageKinds();
std::vector<std::string> transportKinds();
std::vector<std::string> progressKinds();
std::vector<std::string> allReduceKinds();

/// Runs as asked and returns the process's exit status. Throws std::exception
/// for what a user can put right.
int runCommand(const RunSettings &settings);

/// Whether this process speaks for its job: errors that all ranks have are
/// told once.
bool isSpokesman();

/// To be called before a failure is told. Ranks of a job mostly fail alike: the
/// spokesman tells at once, which ends the others before they do. One that
/// fails alone is heard a moment later.
void giveWay();

} // namespace chimera

#endif // CHIMERA_TOOLS_RUNCOMMAND_H
