//===- reader.cpp - Fuzzes the reader of program files --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libFuzzer target. Its input is the content of a program file, without the
// header. The target adds a correct header. One input in 16 is used as a whole
// file instead. For any input, reading and proving must end with an answer, at
// a cost proportional to the size of the file.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"
#include "runtime/proof/Verify.h"
#include "test/runtime/fuzz/Effort.h"
#include "test/runtime/fuzz/Fields.h"
#include "test/runtime/program/Framed.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace chimera;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

namespace {
constexpr size_t kHeader = 32;

struct Counts {
  uint64_t inputs = 0, read = 0, accepted = 0;
  ~Counts() {
    fuzz::Highest highest = fuzz::highestEffort();
    std::fprintf(stderr,
                 "fuzz-reader: %" PRIu64 " files, %" PRIu64
                 " readable, %" PRIu64
                 " accepted; at most %.1f bytes of memory and %.0f regions for "
                 "each byte\n",
                 inputs, read, accepted, highest.memory, highest.regions);
  }
} counts;

void look(std::span<const std::byte> file) {
  ++counts.inputs;
  fuzz::Effort effort;
  std::string error;
  std::optional<program::ProgramT> program = program::deserialize(file, error);
  effort.check("reading a file", file.size());
  if (!program) {
    if (error.empty())
      std::abort();
    return;
  }
  ++counts.read;
  std::vector<program::Violation> violations = program::verifyProgram(*program);
  effort.check("proving a file", file.size());
  for (const program::Violation &violation : violations)
    if (violation.message.empty())
      std::abort();
  // These functions must work for refused programs, too.
  for (uint32_t w = 0; w < std::min<size_t>(program->workers.size(), 8); ++w)
    for (uint32_t i = 0; i < 64; ++i)
      if (program::describe(*program, w, i).empty())
        std::abort();
  if (violations.empty()) {
    ++counts.accepted;
    if (file.size() < 1 << 16 && program::dumpJson(*program).empty())
      std::abort();
  }
}
} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  fuzz::Random random(seed);
  if (!random.oneIn(20))
    return LLVMFuzzerMutate(data, size, most);
  std::vector<std::byte> file = fuzz::makeFile(random);
  if (file.size() - kHeader > most)
    return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, file.data() + kHeader, file.size() - kHeader);
  return file.size() - kHeader;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  look(size % 16 == 1 ? std::vector(bytes.begin(), bytes.end())
                      : program::framed(bytes));
  return 0;
}
