//===- programs.cpp - Fuzzes the proof of a program -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libFuzzer target. Its input is a program file. The mutator changes fields
// of the program. Programs that verifyProgram accepts run on simulated devices
// (test/runtime/hostile/Run.h); every third of them also runs on threads. The
// results must be the same integers as on one device.
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/ZeroCopy.h"
#include "runtime/program/File.h"
#include "runtime/proof/Verify.h"
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
  std::array<uint64_t, Violation::kRules> refused{}; // by rule
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

[[noreturn]] void fail(const std::string &found) {
  std::fprintf(stderr, "accepted, but %s\n", found.c_str());
  std::abort();
}

/// The bytes that a rank would allocate for its arena. The arena is divided
/// into blocks.
uint64_t allocatedBy(const ProgramT &program, const program::WorkerT &worker) {
  Blocks blocks = blocksOf(program, worker);
  for (size_t b = 0; b < worker.buffers.size(); ++b) {
    const program::Buffer &buffer = worker.buffers[b];
    Blocks::Location location = blocks.locations[b];
    if (!program::isStash(buffer.kind()) &&
        location.offset + buffer.bytes() > blocks.bytes[location.block])
      fail("buffer " + std::to_string(b) + " is not in its block");
  }
  uint64_t bytes = 0;
  for (uint64_t block : blocks.bytes)
    if (block > program::kMaxBytes - bytes)
      fail("the blocks of its arena are too large to count");
    else
      bytes += block;
  return bytes;
}

bool isSmall(const ProgramT &program) {
  uint64_t instructions = 0, bytes = 0;
  for (const auto &worker : program.workers) {
    instructions += worker->instructions.size();
    bytes += allocatedBy(program, *worker);
    // A block needs some bytes even if its buffers are empty.
    bytes += worker->buffers.size() * 256;
  }
  uint64_t ranks = program.workers.size() * uint64_t(program.data_parallel);
  return instructions * program.data_parallel < 5000 && ranks <= 16 &&
         bytes < (4 << 20) / ranks;
}

void runAndCompare(const ProgramT &program) {
  SequentialResult expected = runSequentially(program, kSteps);
  std::string found;
  for (const RunOptions &options : runsOf(counts.accepted, kSteps))
    if (found.empty())
      found = difference(program, run(program, options), expected);
  if (found.empty() && counts.accepted % 3 == 0)
    found = differenceOnThreads(program, expected);
  if (!found.empty())
    fail(found);
}
} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  fuzz::Random random(seed);
  std::string error;
  std::optional<ProgramT> program =
      program::deserialize(std::as_bytes(std::span(data, size)), error);
  // If the program is refused, a changed version is mostly refused for the same
  // reason. So make a new program instead.
  std::vector<std::byte> file;
  if (!program || random.oneIn(50) ||
      (!random.oneIn(4) && !program::verifyProgram(*program).empty())) {
    file = fuzz::makeFile(random);
    program = program::deserialize(file, error);
  }
  if (program) {
    for (uint64_t n = random.oneIn(3) ? 1 + random.below(4) : 1; n > 0; --n)
      fuzz::makeRandomChange(*program, random);
    // If only the stated peak is wrong, correct it in half of the cases.
    // Otherwise the wrong peak would hide other faults.
    if (random.oneIn(2)) {
      std::vector<Violation> violations = program::verifyProgram(*program);
      if (!violations.empty() && violations[0].rule == Rule::Memory)
        setPeaks(*program);
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
  if (!same || program::serialize(*same) != again)
    fail("written and read again it is another program: " + error);
  if (isSmall(*program)) {
    runAndCompare(*program);
    ++counts.equal;
  }
  return 0;
}
