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
extern const Scheme kInterleaved1F1B;
extern const Scheme kOneForwardOneBackward;
extern const Scheme kPipeDream;
extern const Scheme kPipeDream2BW;
extern const Scheme kZBV;

/// For schemes that have one stage of a pipeline on each worker.
std::string checkOneStageEach(const Request &request);

/// One pipeline with all micro-batches of the request, its stage s on worker
/// `workerOf(s)`.
template <typename WorkerOf>
Plan placeOne(const Request &request, WorkerOf workerOf) {
  Plan plan;
  Pipeline &pipeline = plan.pipelines.emplace_back();
  for (int32_t s = 0; s < request.stageCount(); ++s)
    pipeline.workers.push_back(workerOf(s));
  for (int32_t m = 0; m < request.microBatches; ++m)
    pipeline.microBatches.push_back(m);
  return plan;
}

/// One pipeline down the workers, stage s on worker s, with all micro-batches.
Plan placeLinear(const Request &request);

/// One pipeline in each direction, without micro-batches: down has stage s on
/// worker s, up on worker D-1-s, both shifted down the ring by `shift`.
std::vector<Pipeline> placeBothWays(int32_t workers, int32_t shift = 0);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_FAMILIES_H
