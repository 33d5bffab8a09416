//===- Families.h - The families of schedules -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The families of schedules, one file each. Registry.cpp lists them by name.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FAMILIES_FAMILIES_H
#define CHIMERA_COMPILER_SCHEDULE_FAMILIES_FAMILIES_H

#include "compiler/schedule/families/Scheme.h"

namespace chimera::schedule {

extern const Scheme kChimera;
extern const Scheme kGems;
extern const Scheme kGPipe;
extern const Scheme kInterleaved1F1B;
extern const Scheme kOneForwardOneBackward;
extern const Scheme kPipeDream;
extern const Scheme kPipeDream2BW;
extern const Scheme kZBV;

/// The check of schemes in which each pipeline has one stage on each worker: an
/// error if the numbers of stages and workers differ, otherwise an empty
/// string.
std::string checkOneStageEach(const Request &request);

/// One pipeline with all micro-batches of the request. Its stage s is on worker
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

/// One pipeline with all micro-batches. Stage s is on worker s.
Plan placeLinear(const Request &request);

/// One pipeline in each direction, without micro-batches. Stage s of the down
/// pipeline is on worker s, stage s of the up pipeline on worker D-1-s. The
/// workers of both pipelines are then shifted by `shift`, modulo D. D is the
/// value of `workers`.
std::vector<Pipeline> placeBothWays(int32_t workers, int32_t shift = 0);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_FAMILIES_H
