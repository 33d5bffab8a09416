//===- NormShare.cpp - Which squares a replica adds up --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/NormShare.h"

#include "runtime/device/Fold.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;

ConstBytes chimera::runtime::normShareOf(const program::ProgramT &program,
                                         uint32_t stage, ElementType type,
                                         ConstBytes gradient, uint64_t replica,
                                         uint64_t replicas) {
  // The tied parameters are at one end of the last stage's gradient.
  if (program.tied && stage > 0 && stage + 1 == program.stages.size()) {
    const uint64_t offset = program.tied->last_offset();
    gradient = offset == 0 ? gradient.subspan(program.tied->bytes())
                           : gradient.first(offset);
  }
  const uint64_t each = elementBytes(type);
  const uint64_t elements = (gradient.size() + each - 1) / each;
  auto boundary = [&](uint64_t k) {
    // elements * k / replicas, without overflow
    const uint64_t element =
        elements / replicas * k + elements % replicas * k / replicas;
    return std::min<uint64_t>(element * each, gradient.size());
  };
  const uint64_t begin = boundary(replica);
  return gradient.subspan(begin, boundary(replica + 1) - begin);
}
