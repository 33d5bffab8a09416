//===- Results.cpp - Output of a run --------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Results.h"

#include "runtime/interpreter/TraceFormat.h"
#include "runtime/model/weights/Finite.h"
#include "runtime/model/weights/WeightFiles.h"
#include "runtime/program/FallbackFile.h"
#include "runtime/program/Layers.h"
#include "tools/CommonOptions.h"
#include "tools/RunFiles.h"
#include "tools/StartNotices.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

using namespace chimera;
using namespace chimera::runtime;

namespace {
uint64_t tokensPerStep(const program::ProgramT &program) {
  return program::samplesPerStep(program) *
         static_cast<uint64_t>(program::contextOf(*program.model).value_or(0));
}

/// "stage 2", "stages 0 and 1" or "stages 0, 1 and 2".
std::string namesOf(const std::vector<uint32_t> &stages) {
  std::string names = stages.size() == 1 ? "stage " : "stages ";
  for (size_t i = 0; i < stages.size(); ++i)
    names += (i == 0                   ? ""
              : i + 1 == stages.size() ? " and "
                                       : ", ") +
             std::to_string(stages[i]);
  return names;
}

/// An error message that says why the run diverged. Arrays may have values that
/// are no numbers.
std::string reasonOf(const Divergence &what, bool hasArrays) {
  const std::string step = std::to_string(what.step + 1);
  return (what.loss
              ? "the loss of step " + step + " is " +
                    (std::isnan(*what.loss) ? "not a number" : "infinite")
              : "gradients of step " + step + " are not finite" +
                    (what.stages.empty() ? ""
                                         : ", in " + namesOf(what.stages))) +
         (what.skipped == 0
              ? ""
              : ", after " + program::countWithNoun(what.skipped, "step") +
                    " that --skip-nonfinite left out") +
         (what.step == 0
              ? ": no update came before it, so the initial weights or the "
                "data are the reason"
              : std::string(": training diverged, try a lower learning_rate") +
                    (hasArrays ? ", or look for NaN in the data and for "
                                 "micro-batches in which no label counts"
                               : ""));
}

/// Calls `parse` with the text of `file`, if this is an existing regular file
/// that is not empty. Throws std::runtime_error if the file cannot be read or
/// `parse` throws.
void readEarlier(const char *option, const std::string &file,
                 const std::function<void(const std::string &)> &parse) {
  if (file.empty() || !std::filesystem::is_regular_file(file))
    return;
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  const std::string failure = std::string(option) + ": cannot continue '" +
                              file + "' of the earlier runs: ";
  if (!stream)
    throw std::runtime_error(failure + std::strerror(errno));
  if (text.str().empty())
    return;
  try {
    parse(text.str());
  } catch (const std::exception &error) {
    throw std::runtime_error(failure + error.what() +
                             ". Remove it, or give another file");
  }
}

/// The step after which the weights were saved. If stages differ, lists the
/// stages of each step.
std::string stepsOf(const std::vector<uint64_t> &weightsAfter) {
  std::map<uint64_t, std::vector<uint32_t>> stages;
  for (uint32_t stage = 0; stage < weightsAfter.size(); ++stage)
    stages[weightsAfter[stage]].push_back(stage);
  std::string text;
  for (const auto &[step, those] : stages)
    text += (text.empty() ? "" : ", ") +
            (step == 0 ? "before the first step"
                       : "after step " + std::to_string(step)) +
            (stages.size() > 1 ? " of " + namesOf(those) : "");
  return text;
}
} // namespace

Results::Results(const RunSettings &settings, const program::ProgramT &program,
                 const Workload &load, RunConditions conditions)
    : settings(settings), program(program), load(load),
      conditions(std::move(conditions)),
      progress({.steps = settings.steps,
                .tokensPerStep = load.text ? tokensPerStep(program) : 0,
                .quiet = settings.quiet,
                .logFile = settings.log,
                .firstStep = load.firstStep,
                .resumes = !load.resumedFrom.empty(),
                .samplesPerStep =
                    load.dataset ? program::samplesPerStep(program) : 0,
                .eventFolder = settings.tensorboard}),
      lastCheckpoint(load.resumedFrom) {
  if (load.resumedFrom.empty())
    return;
  // Read these files before the first step, so that the run fails early if it
  // cannot continue them.
  readEarlier("--trace", settings.trace, [&](const std::string &text) {
    earlierTrace = parseEarlierTrace(text, load.firstStep);
  });
  readEarlier("--profile", settings.profile, [&](const std::string &text) {
    earlierProfiles = parseEarlierProfiles(text, load.firstStep);
  });
}

void Results::onStep(const StepEvent &event) {
  loss = event.loss;
  attempt([&] { progress.step(event); });
  if (!loss)
    return;
  const bool hasBadNorm =
      loss->gradientNorm && !std::isfinite(*loss->gradientNorm);
  if (settings.skipNonFinite > 0) {
    if (hasBadNorm && skipped < settings.skipNonFinite)
      reportSkipped(event.step);
    return;
  }
  const bool hasBadLoss = !std::isfinite(loss->mean);
  if ((hasBadLoss || hasBadNorm) && settings.save.empty() &&
      settings.checkpoint.empty())
    throw std::runtime_error(
        reasonOf({.step = event.step,
                  .loss = hasBadLoss ? std::optional(loss->mean) : std::nullopt,
                  .stages = {}},
                 hasArrays()) +
        "; with --save the last finite weights are kept");
}

bool Results::hasArrays() const { return load.dataset && !load.text; }

void Results::reportSkipped(uint64_t step) {
  ++skipped;
  if (settings.quiet)
    return;
  progress.endLine();
  std::printf("step %llu is left out: its gradients are not finite (%llu of at "
              "most %llu)\n",
              static_cast<unsigned long long>(step + 1),
              static_cast<unsigned long long>(skipped),
              static_cast<unsigned long long>(settings.skipNonFinite));
  std::fflush(stdout);
}

void Results::onCheckpoint(const CheckpointOutcome &outcome) {
  progress.endLine();
  hasCheckpointFault = !outcome.error.empty();
  if (!outcome.path.empty()) {
    lastCheckpoint = outcome.path;
    if (!settings.quiet) {
      std::printf("checkpoint %s (%s in %.2f s)\n", outcome.path.c_str(),
                  sizeText(outcome.bytes).c_str(), outcome.seconds);
      std::fflush(stdout);
    }
    attempt([&] { progress.checkpoint(outcome); });
  }
  if (outcome.error.empty())
    return;
  const std::string of =
      "checkpoint after step " + std::to_string(outcome.step);
  printError(outcome.path.empty()
                 ? of + " is not written: " + outcome.error + "; " +
                       (lastCheckpoint.empty()
                            ? "there is no earlier one of this run"
                            : "the last one is " + lastCheckpoint)
                 : outcome.error);
}

void Results::onEvaluation(uint64_t step, const EvaluationResult &result) {
  heldOut = result;
  heldOutAfter = step;
  attempt(
      [&] { progress.evaluation(step, result, /*isLast=*/end.has_value()); });
}

void Results::finish(const RunResult &result, nlohmann::json given) {
  summary = std::move(given);
  auto steps = static_cast<unsigned long long>(result.steps);
  progress.endLine();
  end = {.steps = result.steps, .isRegular = result.endedRegularly()};
  summary["steps"] = result.steps;
  summary["seconds"] = result.seconds;
  if (result.steps < settings.steps)
    std::printf("stopped%s after step %llu of %llu\n",
                result.stoppedBy == 0
                    ? ""
                    : (" by " + signalName(result.stoppedBy)).c_str(),
                steps, static_cast<unsigned long long>(settings.steps));
  if (result.stoppedBy != 0)
    summary["stopped_by"] = signalName(result.stoppedBy);
  if (result.divergence)
    summary["diverged_in_step"] = result.divergence->step + 1;
  if (skipped > 0)
    summary["skipped_steps"] = skipped;
  const bool hadNoStep =
      !load.resumedFrom.empty() && result.steps == load.firstStep;
  if (hadNoStep && !settings.quiet)
    std::printf("no step is left: the checkpoint is after step %llu\n", steps);
  if (loss) {
    summary["loss"] = loss->mean;
    if (load.dataset)
      // The absolute value of NaN has no sign, which would be printed.
      std::printf("final loss %.6f after ",
                  std::isnan(loss->mean) ? std::fabs(loss->mean) : loss->mean);
    std::printf("%llu steps%s in %.1f s\n", steps,
                load.firstStep == 0
                    ? ""
                    : (", the last " +
                       std::to_string(result.steps - load.firstStep) +
                       " of them")
                          .c_str(),
                result.seconds);
  }
  if (result.digest) {
    char digest[20];
    std::snprintf(digest, sizeof(digest), "%016llx",
                  static_cast<unsigned long long>(*result.digest));
    summary["weights_digest"] = digest;
    std::printf("digest of the weights %s\n", digest);
  }
  if (settings.cudaGraphs)
    summary["cuda_graphs"] = load.noGraphsReason.empty();
  if (load.native) {
    summary["native_calls"] = load.native->callCount();
    if (!settings.quiet)
      std::printf(
          "native code ran %s in this process\n",
          program::countWithNoun(load.native->callCount(), "time").c_str());
  }
  // Print these results now, in case the process ends while it saves.
  std::fflush(stdout);
  attempt([&] {
    if (result.endedRegularly())
      save("weights", settings.save, result.weights);
    else
      saveLastFinite(result);
  });
  if (result.endedRegularly())
    attempt(
        [&] { save("gradients", settings.saveGradients, result.gradients); });
  // A run that resumes at its last step has nothing to add.
  if (hadNoStep)
    return;
  if (!settings.profile.empty())
    attempt([&] { saveProfile(result); });
  if (!settings.trace.empty())
    attempt([&] { saveTrace(result); });
}

void Results::saveProfile(const RunResult &result) {
  saveDocument(settings.profile,
               formatProfile(program, result.profiles, rootOf(program),
                             conditions, {load.firstStep, result.steps},
                             earlierProfiles));
}

void Results::saveTrace(const RunResult &result) {
  saveDocument(settings.trace,
               formatTrace(program, result.traces, result.clockError,
                           conditions, earlierTrace));
}

void Results::completeLog() {
  attempt([&] { printHeldOut(); });
  std::fflush(stdout);
  attempt([&] { progress.finish(summary); });
}

template <typename Action> void Results::attempt(Action action) {
  try {
    action();
  } catch (const std::exception &error) {
    reportError(error.what());
  }
}

void Results::printError(const std::string &failure) {
  progress.endLine();
  std::fflush(stdout);
  std::fprintf(stderr, "chimera-run: %s\n", failure.c_str());
}

void Results::reportError(const std::string &failure) {
  printError(failure);
  hasFailed = true;
}

/// Tells at once that a file is complete. The process may end without writing
/// what is in its buffers if the evaluation that follows fails.
static void tellSaved(const std::string &file) {
  std::printf("saved %s\n", file.c_str());
  std::fflush(stdout);
}

std::string Results::save(const char *what, const std::string &file,
                          const std::vector<std::byte> &bytes) {
  std::string error, ignored;
  if (file.empty())
    return {};
  if (saveWeights(program, bytes, file, error, load.tensorNames)) {
    if (!settings.quiet)
      tellSaved(file);
    return file;
  }
  std::string written =
      program::writeFallback(file, [&](const std::string &path) {
        return saveWeights(program, bytes, path, ignored, load.tensorNames,
                           program::IfExists::Fail);
      });
  reportError(error + ": the " + what +
              (written.empty()
                   ? " are lost: neither the current folder nor the "
                     "folder for temporary files has room for them"
                   : " are in " + written));
  return written;
}

/// Saves the weights of a run that diverged, if they are finite, in the place
/// of the last finite weights. The same for a run that a signal ended, unless
/// it writes a checkpoint. Reports why the run ended, where the weights are,
/// and how to continue.
void Results::saveLastFinite(const RunResult &result) {
  const bool hasDiverged = result.divergence.has_value();
  std::string told = hasDiverged ? reasonOf(*result.divergence, hasArrays())
                                 : "ended by " + signalName(result.stoppedBy);
  hasFailed |= hasDiverged;
  const bool hasCheckpoints = !settings.checkpoint.empty();
  if (settings.save.empty() && !hasCheckpoints)
    return reportError(told + "; with --save the last finite weights are kept");
  if (!settings.save.empty() && (hasDiverged || !hasCheckpoints)) {
    const std::string where = saveLastFiniteWeights(result);
    if (where.empty())
      return reportError(told);
    told += "; " + where;
  }
  // A run that diverges writes no checkpoint after the bad step, and may not
  // have written one before it.
  if (hasCheckpoints && (!hasDiverged || !lastCheckpoint.empty()))
    told +=
        "; --resume " + settings.checkpoint +
        (hasDiverged ? " continues from the last checkpoint" : " continues");
  else if (settings.save.empty())
    told += "; there is no checkpoint yet, so nothing is kept: give "
            "--checkpoint-every";
  printError(told);
}

/// Saves the last finite weights. Returns a text that says where they are or
/// why they are not saved. It is empty if that has been reported as an error.
std::string Results::saveLastFiniteWeights(const RunResult &result) {
  const std::string file = result.divergence ? lastFiniteFile(settings.save)
                                             : fileAfterSignal(settings);
  // Check the weights too: they may be infinite although the gradients are
  // finite.
  if (!areFinite(program.weight_type, result.weights))
    return "the weights are not saved, because they are not finite either";
  if (file.empty())
    return "the weights are not saved: '" + settings.save +
           "' is not a regular file, so there is no place for the last finite "
           "weights";
  const std::string saved = save("weights", file, result.weights);
  return saved.empty() ? ""
                       : "the last finite weights, " +
                             stepsOf(result.weightsAfter) + ", are in " + saved;
}

void Results::saveDocument(const std::string &file,
                           const std::string &document) {
  std::string error;
  if (!program::writeAtomically(file, {std::as_bytes(std::span(document))},
                                error))
    throw std::runtime_error(error);
  if (!settings.quiet)
    tellSaved(file);
}

/// Prints the loss and the accuracy on held-out data. If predicting tokens is
/// the model's only task, also prints the loss of a unigram model.
void Results::printHeldOut() {
  if (!heldOut || heldOutAfter != end->steps) {
    // A run that diverged or was ended by SIGTERM has said how to continue.
    if (load.heldOut && end->isRegular && end->steps < settings.steps &&
        !settings.quiet)
      std::printf("no evaluation, because steps are left: --resume %s "
                  "continues\n",
                  settings.checkpoint.c_str());
    return;
  }
  summary["held_out_loss"] = heldOut->loss;
  if (heldOut->accuracy)
    summary["held_out_accuracy"] = *heldOut->accuracy;
  std::printf("%s", summaryOf(*heldOut).c_str());
  if (!load.heldOutText || !load.heldOutText->predictsTokensAlone()) {
    std::printf("\n");
    return;
  }
  double unigram = 0;
  try {
    unigram = load.text->unigramLoss(*load.heldOutText, load.heldOutSamples);
  } catch (const std::exception &error) {
    // With --trust-data, the text may have wrong tokens that no step drew. They
    // are no reason to fail now.
    std::printf("\nno unigram model: %s\n", error.what());
    return;
  }
  summary["unigram_loss"] = unigram;
  std::printf(", %sunigram model %.4f (ratio %.3f)\n",
              load.text->isOfBytes() ? "byte-" : "", unigram,
              heldOut->loss / unigram);
}

nlohmann::json chimera::summarize(const program::ProgramT &program,
                                  const RunResult &result, uint32_t cores) {
  nlohmann::json summary;
  uint64_t instructions = 0;
  for (size_t rank = 0; rank < result.ranks.size(); ++rank) {
    const RankUse &use = result.ranks[rank];
    instructions += use.instructions;
    nlohmann::json entry = {
        {"rank", rank},
        {"instructions", use.instructions},
        {"arena_bytes", use.arenaBytes},
        {"stash_bytes", use.stashBytes},
        {"peak_bytes", use.peakBytes},
        {"host_blocks_in_steps", use.hostBlocks},
        {"stated_peak_bytes",
         program.workers[rank % program.workers.size()]->peak_bytes}};
    // The device memory that the program's memory plan does not contain, such
    // as the memory of libraries.
    if (use.deviceBytes > 0) {
      entry["device_bytes"] = use.deviceBytes;
      entry["unplanned_bytes"] =
          use.deviceBytes -
          std::min(use.deviceBytes, use.arenaBytes + use.stashBytes);
    }
    summary["ranks"].push_back(std::move(entry));
  }
  summary["instructions"] = instructions;
  auto share =
      static_cast<double>(std::min<size_t>(result.ranks.size(), cores));
  if (instructions)
    summary["seconds_per_instruction"] =
        result.seconds * share / static_cast<double>(instructions);
  return summary;
}
