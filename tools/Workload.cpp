//===- Workload.cpp - Stages and data of a run ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Workload.h"

#include "runtime/data/ArrayData.h"
#include "runtime/data/OpenTokens.h"
#include "runtime/interpreter/Evaluation.h"
#include "runtime/interpreter/Scale.h"
#include "runtime/model/CapturedStage.h"
#include "runtime/model/ExactStage.h"
#include "runtime/model/SyntheticStage.h"
#include "runtime/model/checkpoint/Folder.h"
#include "runtime/model/checkpoint/SavedState.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/model/weights/WeightFiles.h"
#include "runtime/program/Fields.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Package.h"
#include "runtime/program/Predictions.h"
#include "runtime/program/Printable.h"
#include "runtime/random/Mix.h"
#include "runtime/train/Launch.h"
#include "runtime/train/TrainingRun.h"
#include "tools/TrainingOptions.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string_view>

using namespace chimera;
using namespace chimera::runtime;

TokenOptions chimera::tokenOptions(const RunSettings &settings,
                                   const program::ProgramT &program) {
  return {.format = settings.tokens == kUInt16   ? TokenFormat::UInt16
                    : settings.tokens == kUInt32 ? TokenFormat::UInt32
                    : settings.tokens == kBytes  ? TokenFormat::Bytes
                                                 : TokenFormat::Auto,
          .vocabulary = static_cast<uint64_t>(
              program::vocabularyOf(*program.model).value_or(0)),
          .trustPlainNumbers = settings.trustData};
}

WeightNames chimera::tensorNamesOf(const RunSettings &settings,
                                   const program::ProgramT &program) {
  return settings.names.empty() ? WeightNames()
                                : WeightNames(program, settings.names);
}

/// Whether the inputs of the model keep documents apart (TextData.h).
static bool keepsDocumentsApart(const program::ProgramT &program) {
  if (!program.model)
    return false;
  const std::vector<program::Field> inputs =
      program::inputFields(*program.model);
  const auto has = [&](const char *name) {
    return std::ranges::find(inputs, name, &program::Field::name) !=
           inputs.end();
  };
  return has(program::kPositionIds) && !has(program::kAttentionMask);
}

/// The form of samples: windows or pairs of sentences, with or without masked
/// tokens.
static TokenSampleOptions formOf(const RunSettings &settings,
                                 const program::ProgramT &program) {
  TokenSampleOptions form;
  const auto wants = [&](const char *option, const char *wanted) {
    if (settings.givenOptions.contains(option) &&
        !settings.givenOptions.contains(wanted))
      throw std::invalid_argument(std::string(option) + " is for " + wanted +
                                  ": give that too");
  };
  wants("--mask-rate", "--mask");
  if (settings.givenOptions.contains("--document-end") &&
      !settings.givenOptions.contains("--pairs") && !settings.withinDocuments &&
      !keepsDocumentsApart(program))
    throw std::invalid_argument(
        "--document-end is for --within-documents, --pairs and models with "
        "position_ids and without attention_mask: give --within-documents "
        "too");
  form.withinDocuments = settings.withinDocuments;
  if (settings.givenOptions.contains("--document-end"))
    form.documentEnd = static_cast<int64_t>(settings.documentEnd);
  const bool masks = settings.givenOptions.contains("--mask"),
             pairs = settings.givenOptions.contains("--pairs");
  if (!masks && !pairs)
    return form;
  if (masks && program::lossTerms(*program.model) == 0)
    throw std::invalid_argument(
        "--mask needs a model whose loss is a sum and a weight, because in a "
        "mean all labels count: export it with such a loss");
  if (masks)
    form.masking = {static_cast<int64_t>(settings.mask), settings.maskRate};
  if (pairs)
    form.pairing = {static_cast<int64_t>(settings.pairs[0]),
                    static_cast<int64_t>(settings.pairs[1]),
                    static_cast<int64_t>(settings.pairs[2])};
  return form;
}

/// Refuses options that have no effect on stages of this kind.
static void refuseWithoutEffect(const RunSettings &settings,
                                const std::string &kind) {
  auto refuse = [&](const char *option, const char *wanted) {
    if (!settings.givenOptions.contains(option))
      return;
    std::string reason = "--stages is " + kind;
    if (settings.stages == kAuto)
      reason = kind == kModel ? "the program has a model"
                              : "the program has no model";
    throw std::invalid_argument(
        std::string(option) + " is for " + wanted + " stages, and " + reason +
        (settings.stages == kAuto && std::string_view(wanted) == kSynthetic
             ? ": give --stages synthetic too"
             : ""));
  };
  if (kind != kModel) {
    for (const char *option :
         {"--data",        "--tokens",           "--trust-data",
          "--mask",        "--read-ahead",       "--mask-rate",
          "--pairs",       "--document-end",     "--load",
          "--names",       "--within-documents", "--save",
          "--checkpoint",  "--resume",           "--save-gradients",
          "--hold-out",    "--evaluate-samples", "--evaluate-every",
          "--cuda-graphs", "--epochs",           "--last-batch",
          "--validation",  "--allow-native-code"})
      refuse(option, kModel);
    for (const std::string &option : optimizerOptions())
      refuse(option.c_str(), kModel);
  }
  if (kind != kSynthetic)
    refuse("--unit-ns", kSynthetic);
  else
    refuse("--check-replicas", "model and exact");
}

/// The kind of stages, from --stages and the program. Throws
/// std::invalid_argument if the program has no stages of that kind.
static std::string kindOf(const RunSettings &settings,
                          const program::ProgramT &program) {
  if (settings.stages == kAuto)
    return program.model ? kModel : kExact;
  if (settings.stages == kModel && !program.model)
    throw std::invalid_argument(settings.stages +
                                " stages need a program with a model, got one "
                                "of bare stages");
  return settings.stages;
}

/// Refuses a model with parameters whose initial values must come from a file.
static void refuseWithoutValues(const RunSettings &settings,
                                const program::ProgramT &program) {
  for (const auto &layer : program.model->layers)
    for (const auto &parameter : program.model->kinds[layer->kind]->parameters)
      if (parameter->start == program::Initialization::Given)
        throw std::invalid_argument(
            "expected initial values of '" +
            program::printable(layer->path + parameter->name) +
            "', which the model does not draw: give --load FILE, such as "
            "values.safetensors of its package" +
            (settings.resume.empty()
                 ? std::string()
                 : ". There is no checkpoint in '" + settings.resume +
                       "' yet, so the training would begin at its first "
                       "step"));
}

uint64_t chimera::trainingSteps(const RunSettings &settings,
                                const Workload &load) {
  return settings.epochs > 0
             ? load.dataset->sampleOrder().stepsOf(settings.epochs)
             : settings.steps;
}

uint64_t chimera::digestOfData(const RunSettings &settings,
                               const Workload &load) {
  if (!load.dataset)
    return 0;
  uint64_t digest = mix({load.dataset->digest(), settings.lastBatch == kFill});
  const auto add = [&](std::string_view option,
                       std::initializer_list<uint64_t> words) {
    if (settings.givenOptions.contains(std::string(option)))
      digest =
          mix({digest, digestOf(std::as_bytes(std::span(option))), mix(words)});
  };
  add("--mask", {settings.mask, std::bit_cast<uint64_t>(settings.maskRate)});
  add("--document-end", {settings.documentEnd});
  if (settings.pairs.size() == 3)
    add("--pairs", {settings.pairs[0], settings.pairs[1], settings.pairs[2]});
  return digest;
}

/// Refuses a folder of checkpoints, which is not a checkpoint itself.
static void refuseFolderOfCheckpoints(const std::string &folder) {
  std::optional<std::string> found;
  try {
    found = findCheckpoint(folder);
  } catch (const std::runtime_error &) {
    return; // a file of weights, or a folder of such files
  }
  if (found && *found != folder)
    throw std::invalid_argument("--load: expected weights, got the folder of "
                                "checkpoints '" +
                                folder + "': give one of them, such as " +
                                *found + ", or continue with --resume " +
                                folder);
}

/// If the run continues in a folder to which another run still writes, waits
/// for the end of that run.
static void awaitRunBefore(const RunSettings &settings,
                           const program::ProgramT &program) {
  if (settings.resume.empty() || settings.checkpoint.empty())
    return;
  awaitOtherRun(settings.checkpoint, [&] {
    const std::optional<Job> job = findJob();
    if (settings.quiet || (job && job->rank != rootOf(program)))
      return;
    std::printf("waits for another run that writes to %s\n",
                settings.checkpoint.c_str());
    std::fflush(stdout);
  });
}

/// The values with which the training begins: those of a checkpoint of --resume
/// if there is one, else those of --load, else null.
static std::shared_ptr<const InitialValues>
valuesOf(Workload &load, const RunSettings &settings,
         const program::ProgramT &program) {
  awaitRunBefore(settings, program);
  const std::optional<std::string> folder =
      settings.resume.empty() ? std::nullopt : findCheckpoint(settings.resume);
  if (folder) {
    auto saved =
        std::make_shared<SavedState>(program, *folder, load.tensorNames);
    const CheckpointDescription &description = saved->description();
    load.resumedFrom = *folder;
    load.firstStep = description.step;
    load.firstUpdate = description.updates;
    load.valuesDigest = saved->digest();
    load.resumeNote = noteOfChanges(
        description, describeCheckpoint(program, description.step,
                                        trainingSteps(settings, load),
                                        digestOfData(settings, load)));
    return saved;
  }
  if (settings.load.empty())
    return nullptr;
  refuseFolderOfCheckpoints(settings.load);
  auto values =
      std::make_shared<LoadedWeights>(program, settings.load, load.tensorNames);
  load.valuesDigest = values->digest();
  load.conversionMessage = values->conversion();
  return values;
}

/// Adds the stages of the program's model, on the accelerator if there is one,
/// else on the host.
static void addModel(Workload &load, const RunSettings &settings,
                     const program::ProgramT &program) {
  load.tensorNames = tensorNamesOf(settings, program);
  const std::shared_ptr<const InitialValues> values =
      valuesOf(load, settings, program);
  DevicePlacement placement;
  if (load.accelerator)
    placement = load.accelerator->placement();
  if (!settings.allowNativeCode.empty())
    load.native = readNativeCode(program, settings.allowNativeCode);
  load.drawsWeights = !values;
  if (!values)
    refuseWithoutValues(settings, program);
  load.stages = [values, placement, native = load.native](
                    const program::ProgramT &whole, uint32_t stage) {
    return makeGraphStage(whole, stage, values, placement, native);
  };
  load.wholeModel =
      [values, native = load.native](const program::ProgramT &whole, uint32_t) {
        return makeWholeModel(whole, values, native);
      };
}

/// Adds the held-out data: as many samples as --evaluate-samples says, but not
/// more than are held out, rounded up to whole steps. A run that resumes has as
/// many samples in a step as the run before, so it evaluates on the same
/// samples.
static void addHeldOut(Workload &load, const RunSettings &settings,
                       const program::ProgramT &program) {
  const bool holdsOut = settings.holdOut > 0 || load.validation;
  if (!holdsOut || settings.evaluateSamples == 0) {
    const bool evaluates = settings.givenOptions.contains("--evaluate-every");
    if (evaluates || (settings.evaluateSamples > 0 &&
                      settings.givenOptions.contains("--evaluate-samples")))
      throw std::invalid_argument(
          std::string(evaluates ? "--evaluate-every" : "--evaluate-samples") +
          " needs held-out samples, but --hold-out or --evaluate-samples is 0");
    return;
  }
  const Dataset &data = load.validation ? *load.validation : *load.dataset;
  const uint64_t all = data.heldOutCount(),
                 ofStep = program::samplesPerStep(program);
  const uint64_t samples =
      std::min(settings.evaluateSamples, std::max<uint64_t>(all, 1));
  load.evaluationPasses = (samples + ofStep - 1) / ofStep;
  load.heldOutSamples = load.evaluationPasses * ofStep;
  load.heldOut = data.heldOut(load.heldOutSamples);
  load.heldOut =
      withLossWeights(program, std::move(load.heldOut), load.evaluationPasses);
  double weight = 0;
  for (uint64_t pass = 0; pass < load.evaluationPasses; ++pass)
    weight += totalWeight(program, *load.heldOut, pass, /*first=*/0,
                          program.micro_batches);
  // The loss of a micro-batch may be a mean. Then it has no weight, but it is
  // not a number if no label of an array counts.
  const bool hasLabels =
      load.heldOutText || !program::predictedField(*program.model) ||
      !program::ignoredLabel(*program.model) ||
      countLabels(program, *load.heldOut, load.evaluationPasses) > 0;
  if (weight > 0 && hasLabels) {
    if (load.heldOutSamples < all)
      load.evaluationNote = "evaluates " + std::to_string(load.heldOutSamples) +
                            " of " + std::to_string(all) +
                            " held-out samples (--evaluate-samples)";
    return;
  }
  // If no label counts, there is no mean loss, so there is no evaluation.
  if (settings.givenOptions.contains("--evaluate-every"))
    throw std::invalid_argument(
        "--evaluate-every needs held-out samples with labels that count, got "
        "none: give more of them (--evaluate-samples)");
  load.heldOut.reset();
  load.evaluationPasses = load.heldOutSamples = 0;
  load.evaluationNote = "no label of the held-out samples counts, so the model "
                        "is not evaluated: give more of them "
                        "(--evaluate-samples)";
}

/// The files that have arrays. Throws std::invalid_argument if some have arrays
/// and others tokens, and for options that need tokens.
static std::vector<ArrayFileName>
arrayFilesOf(const std::vector<std::string> &files,
             const RunSettings &settings) {
  std::vector<ArrayFileName> arrays;
  for (const std::string &each : files)
    if (std::optional<ArrayFileName> file = parseArrayFile(each))
      arrays.push_back(std::move(*file));
  if (arrays.empty())
    return arrays;
  if (arrays.size() < files.size())
    throw std::invalid_argument("expected either arrays (.npy, .npz, "
                                ".safetensors) or files of tokens as "
                                "--data and --validation, got both");
  for (const char *option : {"--tokens", "--mask", "--mask-rate", "--pairs",
                             "--within-documents", "--document-end"})
    if (settings.givenOptions.contains(option))
      throw std::invalid_argument(std::string(option) +
                                  " is for files of tokens, and --data has "
                                  "arrays: leave it out");
  return arrays;
}

/// Opens the samples in `files`, which all have arrays or all have tokens.
static std::unique_ptr<Dataset>
openSamples(const std::vector<std::string> &files, double holdOut,
            const RunSettings &settings, const program::ProgramT &program) {
  const LastBatch last =
      settings.lastBatch == kFill ? LastBatch::Fill : LastBatch::Drop;
  const std::vector<ArrayFileName> arrays = arrayFilesOf(files, settings);
  if (!arrays.empty())
    return std::make_unique<ArrayData>(arrays, program, holdOut, last);
  return std::make_unique<TextData>(
      openTokens(files, tokenOptions(settings, program)), program, holdOut,
      formOf(settings, program), last);
}

/// Opens the samples of --data and --validation.
static std::unique_ptr<Dataset> openDataset(Workload &load,
                                            const RunSettings &settings,
                                            const program::ProgramT &program) {
  std::vector<std::string> all = settings.data;
  all.insert(all.end(), settings.validation.begin(), settings.validation.end());
  // Check this before --data and --tokens: if tokens do not suit the model,
  // these options would be the wrong advice.
  if (arrayFilesOf(all, settings).empty())
    expectTokenFields(*program.model);
  if (settings.data.empty())
    throw std::invalid_argument(
        load.kind + " stages need data to train on: give --data FILE, or run "
                    "without data with --stages exact or synthetic");
  const bool holdsOut = settings.validation.empty();
  auto dataset = openSamples(settings.data, holdsOut ? settings.holdOut : 0,
                             settings, program);
  load.dataset = dataset.get();
  load.text = load.heldOutText = dynamic_cast<TextData *>(dataset.get());
  if (holdsOut)
    return dataset;
  try {
    load.validation =
        openSamples(settings.validation, /*holdOut=*/1, settings, program);
  } catch (const std::exception &error) {
    throw std::runtime_error(std::string("--validation: ") + error.what());
  }
  load.heldOutText = dynamic_cast<TextData *>(load.validation.get());
  return dataset;
}

Workload chimera::makeWorkload(const RunSettings &settings,
                               const program::ProgramT &program) {
  Workload load;
  load.kind = kindOf(settings, program);
  refuseWithoutEffect(settings, load.kind);
  // Check this before searching for a GPU.
  if (settings.device == kCuda && !settings.allowNativeCode.empty())
    throw std::invalid_argument("native code runs on hosts only: leave out "
                                "--allow-native-code or --device cuda");
  if (settings.device == kCuda)
    load.accelerator =
        loadCuda({.stagesOnHost = load.kind != kModel,
                  .transportAllReduce = settings.allReduce == kTransport});
  if (load.kind != kModel) {
    load.stages = load.kind == kExact
                      ? StageFactory(makeExactStage)
                      : makeSyntheticStages(settings.unitNanoseconds);
    load.data = std::make_unique<SyntheticData>(program.seed);
    return load;
  }
  std::unique_ptr<Dataset> dataset = openDataset(load, settings, program);
  addHeldOut(load, settings, program);
  load.data = withLossWeights(program, std::move(dataset));
  addModel(load, settings, program);
  if (load.accelerator) {
    if (settings.cudaGraphs)
      load.noGraphsReason = graphsUnsupportedReason(program);
    if (settings.cudaGraphs && load.noGraphsReason.empty()) {
      load.warmUpRuns = kGraphWarmUpRuns;
      load.stages = [inner = load.stages, gpus = load.accelerator.get()](
                        const program::ProgramT &whole, uint32_t stage) {
        return wrapWithGraphs(inner(whole, stage), gpus->makeGraphFactory());
      };
    }
    load.memoryMeter = &load.accelerator->meter();
    return load;
  }
  load.hostMeter = std::make_unique<TensorMeter>();
  load.memoryMeter = load.hostMeter.get();
  return load;
}
