//===- Families.cpp - Helpers for all families of schedules ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

namespace chimera::schedule {

std::string checkOneStageEach(const Request &request) {
  if (request.workers == request.stageCount())
    return {};
  return "expected as many stages as workers (" +
         std::to_string(request.workers) + "), got " +
         std::to_string(request.stageCount());
}

Plan placeLinear(const Request &request) {
  return placeOne(request, [](int32_t stage) { return stage; });
}

std::vector<Pipeline> placeBothWays(int32_t workers, int32_t shift) {
  std::vector<Pipeline> pipelines(2);
  pipelines[1].up = true;
  for (int32_t w = 0; w < workers; ++w) {
    pipelines[0].workers.push_back((w + shift) % workers);
    pipelines[1].workers.push_back((workers - 1 - w + shift) % workers);
  }
  return pipelines;
}

} // namespace chimera::schedule
