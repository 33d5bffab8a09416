//===- Workload.cpp - What a run computes ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Workload.h"

#include "runtime/stage/ExactStage.h"
#include "runtime/stage/GraphedStage.h"
#include "runtime/stage/SyntheticStage.h"
#include "runtime/stage/torch/Tensors.h"
#include "runtime/stage/torch/TransformerStage.h"

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

/// Refuses options that stages of this kind do nothing with.
static void refuseWithoutEffect(const RunSettings &settings,
                                const std::string &kind) {
  auto refuse = [&](const char *option, const char *wanted) {
    if (!settings.given.contains(option))
      return;
    std::string reason = "--stages is " + kind;
    if (settings.stages == kAuto)
      reason = kind == kTransformer ? "the program has a model"
                                    : "the program has no model";
    throw std::invalid_argument(std::string(option) + " is for " + wanted +
                                " stages, and " + reason);
  };
  if (kind != kTransformer)
    for (const char *option :
         {"--data", "--save", "--save-gradients", "--hold-out",
          "--evaluate-batches", "--cuda-graphs"})
      refuse(option, kTransformer);
  if (kind != kSynthetic)
    refuse("--unit-ns", kSynthetic);
  else
    refuse("--check-replicas", "transformer and exact");
}

Workload chimera::makeWorkload(const RunSettings &settings,
                               const program::ProgramT &program) {
  Workload load;
  load.kind = settings.stages;
  if (load.kind == kAuto)
    load.kind = program.model ? kTransformer : kExact;
  if (load.kind == kTransformer && !program.model)
    throw std::invalid_argument(
        "transformer stages need a program with a model, got one of bare "
        "stages");
  refuseWithoutEffect(settings, load.kind);
  if (settings.device == kCuda)
    load.accelerator =
        loadCuda({.stagesOnHost = load.kind != kTransformer,
                  .ownAllReduce = settings.allReduce == kTransport});
  if (load.kind != kTransformer) {
    load.stages = load.kind == kExact
                      ? StageFactory(makeExactStage)
                      : makeSyntheticStages(settings.unitNanoseconds);
    load.data = std::make_unique<SyntheticData>(program.seed);
    return load;
  }
  if (settings.data.empty())
    throw std::invalid_argument(
        "transformer stages need text to train on: give --data FILE, or "
        "--stages exact or synthetic to run without");
  auto text =
      std::make_unique<TextData>(settings.data, program, settings.holdOut);
  load.text = text.get();
  load.data = std::move(text);
  if (load.accelerator) {
    const Place place{.isCuda = true, .kernels = &load.accelerator->kernels()};
    load.stages = [place](const program::ProgramT &whole, uint32_t stage) {
      return makeTransformerStage(whole, stage, place);
    };
    if (settings.cudaGraphs)
      load.noGraphs = whyNoGraphs(program);
    if (settings.cudaGraphs && load.noGraphs.empty()) {
      load.rehearsals = kRehearsalsOfGraphs;
      load.stages = [inner = load.stages, gpus = load.accelerator.get()](
                        const program::ProgramT &whole, uint32_t stage) {
        return withGraphs(inner(whole, stage), gpus->makeGraphs());
      };
    }
    load.meter = &load.accelerator->meter();
    return load;
  }
  load.stages = [](const program::ProgramT &whole, uint32_t stage) {
    return makeTransformerStage(whole, stage);
  };
  load.ownMeter = std::make_unique<TensorMeter>();
  load.meter = load.ownMeter.get();
  return load;
}

bool chimera::evaluates(const RunSettings &settings, const Workload &load) {
  return load.text && load.text->heldOutBytes() > 0 &&
         settings.evaluateBatches > 0;
}
