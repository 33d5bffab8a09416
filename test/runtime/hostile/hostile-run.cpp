//===- hostile-run.cpp - Runs program files under many seeds --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs each file under each seed, a third of them in each way that Run.h has,
// with --threads once more as chimera-run does, and holds losses, weights and
// gradients against one device. The last line counts; a file and a seed that
// give anything else are told with what was found.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ProvenFile.h"
#include "runtime/stage/Mix.h"
#include "test/runtime/hostile/Run.h"

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>

using namespace chimera;
using namespace chimera::runtime;

int main(int argc, char **argv) {
  CLI::App app("Runs programs by one thread in virtual time", "hostile-run");
  std::vector<std::string> files;
  uint64_t seeds = 10, first = 0, steps = 3;
  app.add_option("FILE", files)->required();
  app.add_option("--seeds", seeds, "how many, from --first on");
  app.add_option("--first", first, "the first seed");
  app.add_option("--steps", steps, "training steps of each run");
  bool threads = false;
  app.add_flag("--threads", threads,
               "once with a thread a rank, and print the digest");
  CLI11_PARSE(app, argc, argv);

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
    if (!threads)
      continue;
    std::string found = hostile::differenceOnThreads(*program, expected);
    ++runs;
    failures += !found.empty();
    if (!found.empty())
      std::printf("FAIL %s --threads: %s\n", file.c_str(), found.c_str());
    std::printf("digest of the weights %016" PRIx64 "\n",
                digestOf(expected.weights));
  }
  std::printf("%zu programs, %" PRIu64 " runs, %" PRIu64
              " instructions, %" PRIu64 " runs failed\n",
              files.size(), runs, instructions, failures);
  return failures != 0;
}
