//===- Chimera.h - Options and formulas of Chimera --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FAMILIES_CHIMERA_H
#define CHIMERA_COMPILER_SCHEDULE_FAMILIES_CHIMERA_H

#include "compiler/schedule/families/Formulas.h"

namespace chimera::schedule {

/// The way in which basic units follow each other. A basic unit runs up to D
/// micro-batches, where D is the number of stages.
enum class Concatenation : uint8_t {
  Direct,   ///< one unit after another
  Eager,    ///< direct, but some forwards of the first stage run earlier
            ///< (Chimera.cpp)
  Doubling, ///< a forward covers two micro-batches, a backward one
  FineTunedDoubling, ///< doubling, but with one forward for each micro-batch
  Halving, ///< a forward covers one micro-batch, a backward half of one
};

/// True if every forward and every backward covers exactly one micro-batch.
constexpr bool isOneByOne(Concatenation concatenation) {
  return concatenation == Concatenation::Direct ||
         concatenation == Concatenation::Eager;
}

std::span<const Option> chimeraOptions();

/// The value of option `pipelines`: the number of copies of the model, half of
/// them in each direction.
int32_t pipelinesOf(const Options &options);
Concatenation concatenationOf(const Options &options);
/// The options of Chimera with these two values.
Options chooseChimera(int32_t pipelines, Concatenation concatenation);

std::span<const BubbleFormula> chimeraBubbles();
std::span<const PeakFormula> chimeraPeaks();

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_CHIMERA_H
