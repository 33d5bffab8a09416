//===- Workload.h - Stages and data of a run --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_WORKLOAD_H
#define CHIMERA_TOOLS_WORKLOAD_H

#include "runtime/data/TextData.h"
#include "runtime/interpreter/MemoryMeter.h"
#include "runtime/model/Stage.h"
#include "runtime/model/graph/NativeCode.h"
#include "runtime/model/weights/WeightNames.h"
#include "runtime/train/Accelerator.h"
#include "tools/RunSettings.h"

#include <memory>

namespace chimera {

/// The stages of a run, and its data.
struct Workload {
  std::string kind; ///< one of stageKinds(), but not auto
  runtime::StageFactory stages;
  /// Makes the whole model as one stage, and ignores the given stage number.
  /// Empty if the program has no model.
  runtime::StageFactory wholeModel;
  /// Digest of the initial values from --resume or --load; 0 if drawn.
  uint64_t valuesDigest = 0;
  std::string resumedFrom;  ///< the checkpoint of --resume; empty if none
  uint64_t firstStep = 0;   ///< the number of steps before this run
  uint64_t firstUpdate = 0; ///< the number of updates before this run
  /// The differences from the run that wrote the checkpoint; empty if none.
  std::string resumeNote;
  std::string conversionMessage;    ///< says to which type the values of --load
                                    ///< are converted; empty if they are not
  runtime::WeightNames tensorNames; ///< names of tensors in files of weights
  /// Native code that replaces graphs of an exported model. Null without
  /// --allow-native-code.
  std::shared_ptr<const runtime::NativeCode> native;
  std::unique_ptr<runtime::DataSource> data;
  runtime::Dataset *dataset = nullptr; ///< the samples in `data`, or null
  runtime::TextData *text = nullptr;   ///< the same if they are tokens
  /// The samples of --validation; null without.
  std::unique_ptr<runtime::Dataset> validation;
  /// The text of which a part is held out: `text` or `validation`. Null if they
  /// are no tokens.
  runtime::TextData *heldOutText = nullptr;
  /// The held-out data for evaluations. Null if there are none.
  std::unique_ptr<runtime::DataSource> heldOut;
  uint64_t evaluationPasses = 0; ///< passes of an evaluation (Interpreter.h)
  uint64_t heldOutSamples = 0;   ///< samples in these passes
  /// Whether the model starts with weights drawn at random.
  bool drawsWeights = false;
  /// Why there is no evaluation although samples were held out, or how many of
  /// the held-out samples an evaluation takes. Empty if it takes all.
  std::string evaluationNote;
  std::unique_ptr<runtime::MemoryMeter>
      hostMeter; ///< measures the memory of tensors on the host
  const runtime::MemoryMeter *memoryMeter = nullptr;
  std::unique_ptr<runtime::Accelerator> accelerator; ///< with --device cuda
  int warmUpRuns = 1; ///< warm-up runs of a step on the accelerator
  /// The reason why there are no CUDA graphs although the user asked for them.
  /// Empty if there is none.
  std::string noGraphsReason;
};

/// The options for opening files of tokens for the program's model. Requires
/// that the program has a model.
runtime::TokenOptions tokenOptions(const RunSettings &settings,
                                   const program::ProgramT &program);

/// The names of tensors from the file of --names. Throws std::runtime_error as
/// WeightNames does.
runtime::WeightNames tensorNamesOf(const RunSettings &settings,
                                   const program::ProgramT &program);

/// The steps of the training, from --steps or --epochs.
uint64_t trainingSteps(const RunSettings &settings, const Workload &load);

/// A digest of the data and of the order in which the run trains on them. 0 if
/// there are none.
uint64_t digestOfData(const RunSettings &settings, const Workload &load);

/// Makes the stages and the data. Throws std::exception if the settings
/// contradict the program or each other, or if the text cannot be read.
Workload makeWorkload(const RunSettings &settings,
                      const program::ProgramT &program);

} // namespace chimera

#endif // CHIMERA_TOOLS_WORKLOAD_H
