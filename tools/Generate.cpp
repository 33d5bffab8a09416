//===- Generate.cpp - chimera-run --generate ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Commands.h"

#include "runtime/data/OpenTokens.h"
#include "runtime/data/Tokens.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/weights/WeightFiles.h"
#include "tools/Workload.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {

constexpr uint64_t kMaxPrompt = 1 << 24;

std::unique_ptr<Predictor> makePredictor(const RunSettings &settings,
                                         const program::ProgramT &program) {
  const auto values = std::make_shared<const LoadedWeights>(
      program, settings.load, tensorNamesOf(settings, program));
  if (const std::string conversion = values->conversion(); !conversion.empty())
    std::fprintf(stderr, "--load: %s\n", conversion.c_str());
  return makePredictor(program, values);
}

void write(int64_t token, bool isByte) {
  const int written =
      isByte ? std::putchar(static_cast<int>(token))
             : std::printf("%lld\n", static_cast<long long>(token));
  if (written < 0 || std::fflush(stdout) != 0)
    throw std::runtime_error(std::string("cannot write the text: ") +
                             std::strerror(errno));
}

} // namespace

void chimera::generateText(const RunSettings &settings,
                           const program::ProgramT &program) {
  if (!program.model)
    throw std::invalid_argument(
        "--generate needs a program with a model, got one of bare stages");
  TokenOptions options = tokenOptions(settings, program);
  options.mostBytes = kMaxPrompt;
  const std::unique_ptr<Tokens> prompt = openTokens({settings.prompt}, options);
  const bool isOfBytes = prompt->tokenBound() == 256;
  if (prompt->count() == 0 || prompt->count() > kMaxPrompt)
    throw std::runtime_error("expected a prompt of 1 to " +
                             std::to_string(kMaxPrompt) + " tokens, got " +
                             std::to_string(prompt->count()) + " in " +
                             prompt->fileNames());
  const std::unique_ptr<Predictor> model = makePredictor(settings, program);
  std::vector<int64_t> text(prompt->count());
  prompt->read(0, text);
  if (isOfBytes)
    for (int64_t byte : text)
      write(byte, isOfBytes);
  const SamplingOptions sampling{.temperature = settings.temperature,
                                 .seed = settings.generateSeed,
                                 .vocabularyLimit = prompt->tokenBound()};
  generate(*model, text, settings.generate, sampling,
           [&](int64_t token) { write(token, isOfBytes); });
  if (isOfBytes)
    write('\n', isOfBytes);
}
