//===- WeightsDigest.cpp - A digest of the whole model's weights ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/WeightsDigest.h"

#include "runtime/control/Messages.h"
#include "runtime/random/Mix.h"
#include "runtime/train/Tied.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace chimera;
using namespace chimera::runtime;

static uint64_t wordBytes(const program::ProgramT &program) {
  const program::Tied *tied = program.tied.get();
  const bool areWhole =
      (!tied || (tied->bytes() % 4 == 0 && tied->last_offset() % 4 == 0)) &&
      std::ranges::all_of(program.stages, [](const program::Stage &stage) {
        return program::gradientBytes(stage) % 4 == 0;
      });
  return areWhole ? 4 : 1;
}

/// The contribution of `bytes` to the digest. `first` is the position of the
/// first of these bytes in the whole model. A word has `ofWord` bytes.
static uint64_t partOf(ConstBytes bytes, uint64_t first, uint64_t ofWord) {
  uint64_t sum = 0;
  for (uint64_t at = 0; at < bytes.size(); at += ofWord) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, ofWord);
    sum += splitMix64(splitMix64((first + at) / ofWord) ^ word);
  }
  return sum;
}

uint64_t chimera::runtime::digestOfWeights(const program::ProgramT &program,
                                           ConstBytes whole) {
  return partOf(whole, 0, wordBytes(program));
}

uint64_t chimera::runtime::gatherDigest(const program::ProgramT &program,
                                        Control &control, uint32_t root,
                                        const ReplicaBytes &replicas,
                                        std::chrono::milliseconds timeout) {
  const uint64_t ofWord = wordBytes(program);
  uint64_t own = 0, first = 0;
  for (uint32_t s = 0; s < program.stages.size(); ++s) {
    const uint64_t bytes = program::gradientBytes(program.stages[s]);
    if (control.rank() == program.pipelines.at(0)->workers.at(s)) {
      ConstBytes held = replicas.at({0, s}).get().first(bytes);
      if (program.tied && s + 1 == program.stages.size()) {
        const uint64_t copy = program.tied->last_offset();
        own += partOf(held.first(copy), first, ofWord);
        held = held.subspan(copy + program.tied->bytes());
        own += partOf(held, first + copy, ofWord);
      } else {
        own += partOf(held, first, ofWord);
      }
    }
    first += bytes;
  }
  const std::vector<uint64_t> parts = gatherValues(control, root, own, timeout);
  return std::accumulate(parts.begin(), parts.end(), uint64_t{0});
}
