//===- Results.cpp - What a run prints, logs and saves --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Results.h"

#include "runtime/program/Output.h"
#include "runtime/stage/Mix.h"
#include "runtime/stage/torch/Weights.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace chimera;
using namespace chimera::runtime;

namespace {
uint64_t tokensPerStep(const program::ProgramT &program) {
  return program.model
             ? uint64_t(program.micro_batches) * program.data_parallel *
                   program.micro_batch_size * program.model->context
             : 0;
}
} // namespace

Results::Results(const RunSettings &settings, const program::ProgramT &program,
                 const Workload &load)
    : settings(settings), program(program), load(load),
      progress({settings.steps, load.text ? tokensPerStep(program) : 0,
                settings.quiet, settings.log}) {}

void Results::onStep(const StepEvent &event) {
  loss = event.loss;
  progress.step(event);
  if (loss && !std::isfinite(loss->mean))
    throw std::runtime_error("the loss of step " +
                             std::to_string(event.step + 1) + " is " +
                             std::to_string(loss->mean) +
                             ": training diverged, try a lower learning_rate");
}

void Results::finish(const std::vector<std::byte> &weights,
                     const std::vector<std::byte> &gradients, uint64_t steps,
                     double seconds, nlohmann::json summary) {
  summary["steps"] = steps;
  summary["seconds"] = seconds;
  if (steps < settings.steps)
    std::printf("stopped by SIGUSR1 after step %llu of %llu\n",
                static_cast<unsigned long long>(steps),
                static_cast<unsigned long long>(settings.steps));
  if (loss) {
    summary["loss"] = loss->mean;
    if (load.text)
      std::printf("final loss %.6f after ", loss->mean);
    std::printf("%llu steps in %.1f s\n",
                static_cast<unsigned long long>(steps), seconds);
  }
  if (!weights.empty()) {
    char digest[20];
    std::snprintf(digest, sizeof(digest), "%016llx",
                  static_cast<unsigned long long>(digestOf(weights)));
    summary["weights_digest"] = digest;
    std::printf("digest of the weights %s\n", digest);
  }
  save(settings.save, weights);
  save(settings.saveGradients, gradients);
  if (evaluates(settings, load)) {
    uint64_t windows = settings.evaluateBatches * program.micro_batch_size;
    double held = heldOutLoss(program, weights, *load.text, windows);
    double unigram = load.text->unigramLoss(windows);
    summary["held_out_loss"] = held;
    summary["unigram_loss"] = unigram;
    std::printf("held-out loss %.4f, byte-unigram model %.4f (ratio %.3f)\n",
                held, unigram, held / unigram);
  }
  std::fflush(stdout);
  progress.finish(summary);
}

void Results::save(const std::string &file,
                   const std::vector<std::byte> &bytes) {
  std::string error;
  if (file.empty())
    return;
  if (!saveWeights(program, bytes, file, error))
    throw std::runtime_error(error);
  if (!settings.quiet)
    std::printf("saved %s\n", file.c_str());
}

void Results::saveProfile(const std::string &document) {
  std::string error;
  if (!program::writeWhole(settings.profile,
                           {std::as_bytes(std::span(document))}, error))
    throw std::runtime_error(error);
  if (!settings.quiet)
    std::printf("saved %s\n", settings.profile.c_str());
}

nlohmann::json chimera::summarize(const program::ProgramT &program,
                                  const RunResult &result, uint32_t cores) {
  nlohmann::json summary;
  uint64_t instructions = 0;
  for (size_t rank = 0; rank < result.ranks.size(); ++rank) {
    const RankUse &use = result.ranks[rank];
    instructions += use.instructions;
    summary["ranks"].push_back(
        {{"rank", rank},
         {"instructions", use.instructions},
         {"arena_bytes", use.arenaBytes},
         {"stash_bytes", use.stashBytes},
         {"peak_bytes", use.peakBytes},
         {"stated_peak_bytes",
          program.workers[rank % program.workers.size()]->peak_bytes}});
  }
  summary["instructions"] = instructions;
  auto share =
      static_cast<double>(std::min<size_t>(result.ranks.size(), cores));
  if (instructions)
    summary["seconds_per_instruction"] =
        result.seconds * share / static_cast<double>(instructions);
  return summary;
}
