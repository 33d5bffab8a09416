//===- Workload.cpp - What a run computes ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Workload.h"

#include "runtime/program/Package.h"
#include "runtime/stage/ExactStage.h"
#include "runtime/stage/GraphedStage.h"
#include "runtime/stage/SyntheticStage.h"
#include "runtime/stage/exported/ExportedStage.h"
#include "runtime/stage/torch/Tensors.h"
#include "runtime/stage/torch/TransformerStage.h"
#include "runtime/stage/torch/Weights.h"

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

static TokenFormat formatOf(const RunSettings &settings) {
  return settings.tokens == kUInt16   ? TokenFormat::UInt16
         : settings.tokens == kUInt32 ? TokenFormat::UInt32
         : settings.tokens == kText   ? TokenFormat::Text
                                      : TokenFormat::Auto;
}

/// What of the tokens is masked, if anything.
static std::optional<Masking> maskingOf(const RunSettings &settings,
                                        const program::ProgramT &program) {
  if (!settings.given.contains("--mask")) {
    if (settings.given.contains("--mask-rate"))
      throw std::invalid_argument("--mask-rate is for --mask: give that too");
    return std::nullopt;
  }
  if (!program.model || !program.model->package)
    throw std::invalid_argument("--mask is for exported models, whose loss "
                                "says which labels count: the "
                                "runtime's own predict the next token");
  if (!program::isWeighed(*program.model->package))
    throw std::invalid_argument(
        "--mask needs a model whose loss is a sum and its weight, for labels "
        "that do not count would be in a mean: export it with such a loss");
  return Masking{static_cast<int64_t>(settings.mask), settings.maskRate};
}

/// Refuses options that stages of this kind do nothing with.
static void refuseWithoutEffect(const RunSettings &settings,
                                const std::string &kind) {
  auto refuse = [&](const char *option, const char *wanted) {
    if (!settings.given.contains(option))
      return;
    std::string reason = "--stages is " + kind;
    if (settings.stages == kAuto)
      reason = isOfTensors(kind) ? "the program has a model"
                                 : "the program has no model";
    throw std::invalid_argument(std::string(option) + " is for " + wanted +
                                " stages, and " + reason);
  };
  if (!isOfTensors(kind))
    for (const char *option :
         {"--data", "--tokens", "--mask", "--mask-rate", "--load", "--save",
          "--save-gradients", "--hold-out", "--evaluate-batches",
          "--cuda-graphs"})
      refuse(option, "transformer and exported");
  if (kind != kSynthetic)
    refuse("--unit-ns", kSynthetic);
  else
    refuse("--check-replicas", "transformer, exported and exact");
}

/// The kind of stages that the program runs with.
static std::string kindOf(const RunSettings &settings,
                          const program::ProgramT &program) {
  const char *ofModel = !program.model           ? kExact
                        : program.model->package ? kExported
                                                 : kTransformer;
  if (settings.stages == kAuto)
    return ofModel;
  if (isOfTensors(settings.stages) && settings.stages != ofModel)
    throw std::invalid_argument(
        settings.stages + " stages need a program with " +
        (settings.stages == kExported ? "an exported model" : "a model") +
        ", got one " +
        (program.model ? std::string("that ") + ofModel + " stages run"
                       : "of bare stages"));
  return settings.stages;
}

/// Stages of the program's model on the host or, with an accelerator, there.
static void addModel(Workload &load, const RunSettings &settings,
                     const program::ProgramT &program) {
  std::shared_ptr<const SavedWeights> values;
  if (!settings.load.empty()) {
    values = std::make_shared<SavedWeights>(program, settings.load);
    load.valuesDigest = values->digest();
  }
  Place place;
  if (load.accelerator)
    place = {.isCuda = true, .kernels = &load.accelerator->kernels()};
  if (load.kind == kExported) {
    if (load.accelerator)
      throw std::invalid_argument(
          "--device cuda is for models of the runtime's own: an exported one "
          "runs on hosts so far");
    load.stages = [values](const program::ProgramT &whole, uint32_t stage) {
      return makeExportedStage(whole, stage, values);
    };
    load.wholeModel = [values](const program::ProgramT &whole, uint32_t) {
      return makeWholeExportedModel(whole, values);
    };
    load.heldOutLoss = [text = load.text](const program::ProgramT &whole,
                                          ConstBytes weights,
                                          uint64_t windows) {
      return meanHeldOutLoss(*text, windows, whole.micro_batch_size,
                             [&](auto tokens, auto labels) {
                               return WeighedLoss{
                                   lossOf(whole, weights, std::as_bytes(tokens),
                                          std::as_bytes(labels)),
                                   weightOf(whole, std::as_bytes(labels))};
                             });
    };
    return;
  }
  load.stages = [place, values](const program::ProgramT &whole,
                                uint32_t stage) {
    return makeTransformerStage(whole, stage, place, values);
  };
  load.wholeModel = [values](const program::ProgramT &whole, uint32_t) {
    return makeWholeModel(whole, values);
  };
  load.heldOutLoss = [text = load.text](const program::ProgramT &whole,
                                        ConstBytes weights, uint64_t windows) {
    return heldOutLoss(whole, weights, *text, windows);
  };
}

Workload chimera::makeWorkload(const RunSettings &settings,
                               const program::ProgramT &program) {
  Workload load;
  load.kind = kindOf(settings, program);
  refuseWithoutEffect(settings, load.kind);
  if (settings.device == kCuda)
    load.accelerator =
        loadCuda({.stagesOnHost = !isOfTensors(load.kind),
                  .ownAllReduce = settings.allReduce == kTransport});
  if (!isOfTensors(load.kind)) {
    load.stages = load.kind == kExact
                      ? StageFactory(makeExactStage)
                      : makeSyntheticStages(settings.unitNanoseconds);
    load.data = std::make_unique<SyntheticData>(program.seed);
    return load;
  }
  if (settings.data.empty())
    throw std::invalid_argument(
        load.kind + " stages need text to train on: give --data FILE, or "
                    "--stages exact or synthetic to run without");
  auto text = std::make_unique<TextData>(
      openTokens(settings.data, formatOf(settings), TextData::kMostBytes),
      program, settings.holdOut, maskingOf(settings, program));
  load.text = text.get();
  load.data = load.kind == kExported ? withWeights(program, std::move(text))
                                     : std::move(text);
  addModel(load, settings, program);
  if (load.accelerator) {
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
  load.ownMeter = std::make_unique<TensorMeter>();
  load.meter = load.ownMeter.get();
  return load;
}

bool chimera::evaluates(const RunSettings &settings, const Workload &load) {
  return load.text && load.text->heldOutTokens() > 0 &&
         settings.evaluateBatches > 0;
}
