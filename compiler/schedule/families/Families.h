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
extern const Scheme kGPipe;
extern const Scheme kOneForwardOneBackward;

/// One pipeline down the workers, stage s on worker s, with all micro-batches.
std::vector<Pipeline> placeLinear(int32_t stages, int32_t microBatches);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_FAMILIES_H
