//===- Workload.h - What a run computes -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_WORKLOAD_H
#define CHIMERA_TOOLS_WORKLOAD_H

#include "runtime/interpreter/MemoryMeter.h"
#include "runtime/stage/torch/TextData.h"
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
  /// The model's mean loss on so many windows of held-out text.
  std::function<double(const program::ProgramT &, runtime::ConstBytes weights,
                       uint64_t windows)>
      heldOutLoss;
  uint64_t valuesDigest = 0; ///< of what the parameters begin with
  std::unique_ptr<runtime::DataSource> data;
  runtime::TextData *text = nullptr;              ///< `data`, if it is text
  std::unique_ptr<runtime::MemoryMeter> ownMeter; ///< of tensors of the host
  const runtime::MemoryMeter *meter = nullptr;
  std::unique_ptr<runtime::Accelerator> accelerator; ///< with --device cuda
  int rehearsals = 1;                                ///< of a step, on it
  std::string noGraphs; ///< why there are none, if they were asked for
};

/// Throws std::exception where the settings do not fit the program or each
/// other, or the text cannot be read.
Workload makeWorkload(const RunSettings &settings,
                      const program::ProgramT &program);

/// Whether the run ends with a look at held-out text.
bool evaluates(const RunSettings &settings, const Workload &load);

} // namespace chimera

#endif // CHIMERA_TOOLS_WORKLOAD_H
