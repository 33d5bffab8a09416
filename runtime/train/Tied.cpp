//===- Tied.cpp - Tied parameters of first and last stage -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Tied.h"

using namespace chimera;
using namespace chimera::runtime;

void chimera::runtime::dropTiedCopy(const program::ProgramT &program,
                                    std::vector<std::byte> &whole) {
  if (!program.tied)
    return;
  auto begin =
      whole.end() -
      static_cast<ptrdiff_t>(program::gradientBytes(program.stages.back())) +
      static_cast<ptrdiff_t>(program.tied->last_offset());
  whole.erase(begin, begin + static_cast<ptrdiff_t>(program.tied->bytes()));
}
