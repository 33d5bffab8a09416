//===- hostile-run.cpp - Runs program files under many seeds --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs each file under each seed. The seeds take turns between the three modes
// of Run.h. Compares the losses, weights and gradients of each run with those
// of a run on one device. If they differ, prints the file, the seed and the
// difference.
//
// --threads also runs each file as chimera-run does. --models also proves each
// file under every message model. If the proof accepts the program, it must run
// to its end. If the proof refuses the program, the reason must be a deadlock,
// and the program must stop if hosts wait. The last line of the output says how
// many programs and instructions ran and how many runs failed.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ProvenFile.h"
#include "runtime/proof/Verify.h"
#include "runtime/train/WeightsDigest.h"
#include "test/runtime/hostile/Refusal.h"

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>

using namespace chimera;
using namespace chimera::runtime;

namespace {
struct Models {
  uint64_t accepted = 0, refused = 0;
  uint64_t ending = 0; ///< refused, but end if hosts do not wait

  /// Proves a program under its message model, and runs it. If the proof
  /// accepts the program, its runs must give the results `expected`. Otherwise
  /// the reason must be a deadlock, and the run must stop if hosts wait.
  /// Returns the error, or an empty string.
  std::string hold(const program::ProgramT &program, uint64_t seed,
                   const SequentialResult &expected) {
    uint64_t steps = expected.losses.size();
    std::vector<program::Violation> violations =
        program::verifyProgram(program);
    if (violations.empty()) {
      ++accepted;
      for (bool synchronousHosts : {true, false}) {
        hostile::Outcome outcome =
            hostile::run(program, {.seed = seed,
                                   .steps = steps,
                                   .synchronousHosts = synchronousHosts});
        std::string found = hostile::difference(program, outcome, expected);
        if (!found.empty())
          return "accepted, but " + found;
      }
      return {};
    }
    ++refused;
    if (violations[0].rule != program::Violation::Rule::Deadlock)
      return violations[0].message;
    hostile::Refusal refusal = hostile::runRefused(program, seed, steps);
    if (!refusal.wrong.empty())
      return violations[0].message + ", but " + refusal.wrong;
    if (!refusal.withoutWaiting.failure.empty())
      return {};
    ++ending;
    return hostile::difference(program, refusal.withoutWaiting, expected);
  }
};
} // namespace

int main(int argc, char **argv) {
  CLI::App app("Runs programs by one thread in virtual time", "hostile-run");
  std::vector<std::string> files;
  uint64_t seeds = 10, first = 0, steps = 3;
  app.add_option("FILE", files)->required();
  app.add_option("--seeds", seeds, "how many, from --first on");
  app.add_option("--first", first, "the first seed");
  app.add_option("--steps", steps, "training steps of each run");
  bool threads = false, models = false;
  app.add_flag("--threads", threads,
               "once with a thread a rank, and print the digest");
  app.add_flag("--models", models, "under every model of messages");
  CLI11_PARSE(app, argc, argv);

  Models held;
  uint64_t runs = 0, failures = 0, instructions = 0;
  for (const std::string &file : files) {
    std::string error;
    std::optional<program::ProgramT> program =
        program::readProgramFile(file, error);
    if (!program) {
      std::fprintf(stderr, "hostile-run: %s\n", error.c_str());
      return 1;
    }
    SequentialResult expected = hostile::runSequentially(*program, steps);
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
      hostile::Outcome outcome =
          hostile::run(*program, hostile::runsOf(seed, steps)[seed % 3]);
      std::string found = hostile::difference(*program, outcome, expected);
      ++runs;
      instructions += outcome.instructions;
      if (found.empty())
        continue;
      ++failures;
      std::printf("FAIL %s --first %" PRIu64 " --seeds 1: %s\n", file.c_str(),
                  seed, found.c_str());
    }
    for (program::MessageModel model : program::EnumValuesMessageModel()) {
      if (!models)
        break;
      program::ProgramT other = *program;
      other.message_model = model;
      std::string found = held.hold(other, first, expected);
      failures += !found.empty();
      if (!found.empty())
        std::printf("FAIL %s --first %" PRIu64 " --models: under %s: %s\n",
                    file.c_str(), first, program::EnumNameMessageModel(model),
                    found.c_str());
    }
    if (!threads)
      continue;
    std::string found = hostile::differenceOnThreads(*program, expected);
    ++runs;
    failures += !found.empty();
    if (!found.empty())
      std::printf("FAIL %s --threads: %s\n", file.c_str(), found.c_str());
    std::printf("digest of the weights %016" PRIx64 "\n",
                digestOfWeights(*program, expected.weights));
  }
  if (models)
    std::printf("%" PRIu64 " times accepted, %" PRIu64
                " times refused for a deadlock, of which %" PRIu64
                " end where hosts do not wait\n",
                held.accepted, held.refused, held.ending);
  std::printf("%zu programs, %" PRIu64 " runs, %" PRIu64
              " instructions, %" PRIu64 " runs failed\n",
              files.size(), runs, instructions, failures);
  return failures != 0;
}
