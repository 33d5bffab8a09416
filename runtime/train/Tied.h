//===- Tied.h - Parameters that first and last stage hold -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_TIED_H
#define CHIMERA_RUNTIME_TRAIN_TIED_H

#include "runtime/stage/Stage.h"

#include <vector>

namespace chimera::runtime {

/// The tied parameters in the weights, or a gradient, of `stage`; empty where
/// it has none.
template <typename Range>
Range tiedOf(const program::ProgramT &program, uint32_t stage, Range bytes) {
  auto offset = program::tiedOffset(program, stage);
  return offset ? bytes.subspan(*offset, program.tied->bytes()) : Range();
}

/// Leaves the last stage's copy of tied parameters out of `whole`, all stages'
/// parameters or gradients in stage order: the model has them once.
void dropTiedCopy(const program::ProgramT &program,
                  std::vector<std::byte> &whole);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_TIED_H
