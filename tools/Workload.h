//===- Workload.h - What a run computes -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_WORKLOAD_H
#define CHIMERA_TOOLS_WORKLOAD_H

#include "runtime/interpreter/MemoryMeter.h"
#include "runtime/stage/exported/NativeCode.h"
#include "runtime/stage/torch/TextData.h"
#include "runtime/stage/torch/WeightNames.h"
#include "runtime/train/Accelerator.h"
#include "tools/RunSettings.h"

#include <memory>

namespace chimera {

/// What computes and on what data.
struct Workload {
  std::string kind; ///< one of stageKinds() but auto
  runtime::StageFactory stages;
  /// All of a model as one stage, whatever its number; none without a model.
  runtime::StageFactory wholeModel;
  uint64_t valuesDigest = 0;  ///< of what the parameters begin with
  std::string conversion;     ///< of them; empty if there is none
  runtime::WeightNames names; ///< in files of weights
  /// What runs in place of an exported model's graphs; null where none may.
  std::shared_ptr<const runtime::NativeCode> native;
  std::unique_ptr<runtime::DataSource> data;
  runtime::TextData *text = nullptr; ///< in `data`, if it is text
  /// What is evaluated on, null where nothing is.
  std::unique_ptr<runtime::DataSource> heldOut;
  uint64_t passes = 0;      ///< of an evaluation (Interpreter.h)
  uint64_t windows = 0;     ///< of held-out text, that these have
  std::string noEvaluation; ///< why there is none, if text was held out for it
  std::unique_ptr<runtime::MemoryMeter> ownMeter; ///< of tensors of the host
  const runtime::MemoryMeter *meter = nullptr;
  std::unique_ptr<runtime::Accelerator> accelerator; ///< with --device cuda
  int rehearsals = 1;                                ///< of a step, on it
  std::string noGraphs; ///< why there are none, if they were asked for
};

/// How files of tokens for the program's model are opened. Requires one.
runtime::TokenOptions tokenOptions(const RunSettings &settings,
                                   const program::ProgramT &program);

/// What --names says of the program's parameters. Throws std::runtime_error as
/// WeightNames does.
runtime::WeightNames namesOf(const RunSettings &settings,
                             const program::ProgramT &program);

/// Throws std::exception where the settings do not fit the program or each
/// other, or the text cannot be read.
Workload makeWorkload(const RunSettings &settings,
                      const program::ProgramT &program);

} // namespace chimera

#endif // CHIMERA_TOOLS_WORKLOAD_H
