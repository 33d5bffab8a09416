//===- Gpt2Sizes.h - The sizes of a GPT-2 -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_GPT2SIZES_H
#define CHIMERA_RUNTIME_PROGRAM_GPT2SIZES_H

#include <cstdint>

namespace chimera::program {

/// The sizes of a GPT-2.
struct Gpt2Sizes {
  uint32_t layers; ///< transformer blocks
  uint32_t heads;
  uint32_t width;
  uint32_t context; ///< tokens of a sample
  uint32_t vocabulary;
  double dropout = 0;
  bool tied = false; ///< whether the head's matrix is the token embedding
};

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_GPT2SIZES_H
