//===- Tied.h - Tied parameters of first and last stage ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_TIED_H
#define CHIMERA_RUNTIME_TRAIN_TIED_H

#include "runtime/model/Stage.h"

#include <vector>

namespace chimera::runtime {

/// The range of tied parameters in the weights, or in a gradient, of `stage`.
/// Empty if the stage has none.
template <typename Range>
Range tiedOf(const program::ProgramT &program, uint32_t stage, Range bytes) {
  auto offset = program::offsetOfTiedParameters(program, stage);
  return offset ? bytes.subspan(*offset, program.tied->bytes()) : Range();
}

/// Removes the last stage's copy of tied parameters from `whole`, which has the
/// parameters or gradients of all stages in stage order. After this, `whole`
/// has tied parameters only once, in the first stage.
void dropTiedCopy(const program::ProgramT &program,
                  std::vector<std::byte> &whole);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_TIED_H
