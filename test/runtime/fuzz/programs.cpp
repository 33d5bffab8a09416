//===- programs.cpp - Fuzzes what proves a program ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libFuzzer target. Its input is a program file, whose fields the mutator
// changes. What verifyProgram accepts is run by the hostile test bed, and every
// third by threads too, and must give the integers of one device.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"
#include "runtime/program/Verify.h"
#include "test/runtime/fuzz/Effort.h"
#include "test/runtime/fuzz/Fields.h"
#include "test/runtime/hostile/Peaks.h"
#include "test/runtime/hostile/Run.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::hostile;
using program::ProgramT;
using program::Violation;
using Rule = Violation::Rule;

namespace {
constexpr uint64_t kSteps = 2;

struct Counts {
  uint64_t inputs = 0, unreadable = 0, accepted = 0, equal = 0;
  std::array<uint64_t, 8> refused{}; // by rule
  ~Counts() {
    fuzz::Highest highest = fuzz::highestEffort();
    std::fprintf(stderr,
                 "fuzz-programs: %" PRIu64 " programs, %" PRIu64
                 " unreadable, %" PRIu64 " accepted, of which %" PRIu64
                 " ran to equal integers and the others are too large; refused "
                 "by rule:",
                 inputs, unreadable, accepted, equal);
    for (uint64_t each : refused)
      std::fprintf(stderr, " %" PRIu64, each);
    std::fprintf(stderr,
                 "; at most %.1f bytes of memory and %.0f regions for each "
                 "byte\n",
                 highest.memory, highest.regions);
  }
} counts;

bool isSmall(const ProgramT &program) {
  uint64_t instructions = 0, bytes = 0;
  for (const auto &worker : program.workers) {
    instructions += worker->instructions.size();
    bytes += worker->arena_bytes;
    // A block takes some bytes whatever its buffers have.
    bytes += worker->buffers.size() * 256;
  }
  return instructions * program.data_parallel < 5000 &&
         program.workers.size() * program.data_parallel <= 16 &&
         bytes * program.data_parallel < 32 << 20;
}

void runAndCompare(const ProgramT &program) {
  SequentialResult expected = runSequentially(program, kSteps);
  std::string found;
  for (bool buffered : {false, true})
    if (found.empty())
      found = difference(
          program,
          run(program,
              {.seed = counts.accepted, .steps = kSteps, .buffered = buffered}),
          expected);
  if (found.empty() && counts.accepted % 3 == 0)
    found = differenceOnThreads(program, expected);
  if (!found.empty()) {
    std::fprintf(stderr, "accepted, but %s\n", found.c_str());
    std::abort();
  }
}
} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  fuzz::Random random(seed);
  std::string error;
  std::optional<ProgramT> program =
      program::deserialize(std::as_bytes(std::span(data, size)), error);
  // A change of what is refused is mostly refused for the same reason.
  std::vector<std::byte> file;
  if (!program || random.oneIn(50) ||
      (!random.oneIn(4) && !program::verifyProgram(*program).empty())) {
    file = fuzz::makeFile(random);
    program = program::deserialize(file, error);
  }
  if (program) {
    for (uint64_t n = random.oneIn(3) ? 1 + random.below(4) : 1; n > 0; --n)
      fuzz::changeAnything(*program, random);
    // A peak that is no longer right would hide all else.
    if (random.oneIn(2)) {
      std::vector<Violation> violations = program::verifyProgram(*program);
      if (!violations.empty() && violations[0].rule == Rule::Memory)
        statePeaks(*program);
    }
    file = program::serialize(*program);
  }
  if (file.size() > most)
    return size;
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ++counts.inputs;
  fuzz::Effort effort;
  std::string error;
  std::optional<ProgramT> program =
      program::deserialize(std::as_bytes(std::span(data, size)), error);
  effort.check("reading a program", size);
  if (!program) {
    ++counts.unreadable;
    return 0;
  }
  std::vector<Violation> violations = program::verifyProgram(*program);
  effort.check("proving a program", size);
  if (!violations.empty()) {
    ++counts.refused[static_cast<size_t>(violations[0].rule)];
    return 0;
  }
  ++counts.accepted;
  std::vector<std::byte> again = program::serialize(*program);
  std::optional<ProgramT> same = program::deserialize(again, error);
  if (!same || program::serialize(*same) != again) {
    std::fprintf(stderr,
                 "accepted, but written and read again it is another "
                 "program: %s\n",
                 error.c_str());
    std::abort();
  }
  if (isSmall(*program)) {
    runAndCompare(*program);
    ++counts.equal;
  }
  return 0;
}
