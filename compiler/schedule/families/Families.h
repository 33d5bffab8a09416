//===- Families.h - The families of schedules -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One file a family; the registry names them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FAMILIES_FAMILIES_H
#define CHIMERA_COMPILER_SCHEDULE_FAMILIES_FAMILIES_H

#include "compiler/schedule/Registry.h"

namespace chimera::schedule {

extern const Scheme kChimera;
extern const Scheme kGems;
extern const Scheme kGPipe;
extern const Scheme kOneForwardOneBackward;
extern const Scheme kPipeDream;
extern const Scheme kPipeDream2BW;

/// One pipeline down the workers, stage s on worker s, with all micro-batches.
std::vector<Pipeline> placeLinear(int32_t stages, int32_t microBatches,
                                  const SchemeOptions &options);

/// One pipeline in each direction, without micro-batches: down has stage s on
/// worker s, up on worker D-1-s, both shifted down the ring by `shift`.
std::vector<Pipeline> placeBothWays(int32_t stages, int32_t shift = 0);

/// For schemes that can do all sizes, and of which nothing need be said.
std::string checkNothing(int32_t stages, int32_t microBatches,
                         const SchemeOptions &options);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_FAMILIES_H
