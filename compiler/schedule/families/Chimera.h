//===- Chimera.h - Options and formulas of Chimera --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FAMILIES_CHIMERA_H
#define CHIMERA_COMPILER_SCHEDULE_FAMILIES_CHIMERA_H

#include "compiler/schedule/Formulas.h"

namespace chimera::schedule {

/// How more micro-batches than a basic unit holds follow each other.
enum class Concatenation : uint8_t {
  Direct,            ///< one unit after another
  Eager,             ///< direct with first-stage forwards of a unit earlier
  Doubling,          ///< a forward runs two micro-batches, a backward one
  FineTunedDoubling, ///< doubling with a forward for each micro-batch
  Halving,           ///< a forward runs one micro-batch, a backward half of one
};

/// True where every forward and every backward runs one whole micro-batch, unit
/// after unit.
constexpr bool isOneByOne(Concatenation concatenation) {
  return concatenation == Concatenation::Direct ||
         concatenation == Concatenation::Eager;
}

std::span<const Option> chimeraOptions();

/// Of options of that table: the copies of the model, 2f of them.
int32_t pipelinesOf(const Options &options);
Concatenation concatenationOf(const Options &options);
/// Options with these values.
Options chooseChimera(int32_t pipelines, Concatenation concatenation);

std::span<const BubbleFormula> chimeraBubbles();
std::span<const PeakFormula> chimeraPeaks();

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_CHIMERA_H
