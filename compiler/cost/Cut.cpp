//===- Cut.cpp - A model cut into stages ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Cut.h"

#include "compiler/cost/Balance.h"

#include <algorithm>

namespace chimera::cost {

std::string checkCut(int32_t layers, int64_t stages) {
  // Limits the memory for cutting, which grows with the number of layers times
  // the number of stages.
  constexpr int64_t kMostCells = int64_t{1} << 26;
  if (layers < stages)
    return "expected at most " + std::to_string(layers) +
           " stages, the model's layers with embedding and head, got " +
           std::to_string(stages);
  if (int64_t cells = layers * stages; cells > kMostCells)
    return "expected at most " + std::to_string(kMostCells) +
           " layers times stages, got " + std::to_string(cells);
  return {};
}

static CutStage stageOf(const LayerTable &table, int32_t first, int32_t end,
                        int64_t parts) {
  CutStage stage{first, end, {}, {}};
  schedule::StageCost sum{0, 0, 0, 0, 0, 0};
  int64_t parameters = 0, stateElements = 0;
  schedule::StageBytes &bytes = stage.bytes;
  for (int32_t i = first; i < end; ++i) {
    const LayerCost &layer = table.layers[i];
    sum.forward += layer.forward;
    sum.backward += layer.backward;
    sum.inputGradient += layer.inputGradient;
    sum.weightGradient += layer.weightGradient;
    sum.recompute += layer.recompute;
    sum.update += layer.update;
    parameters += layer.parameters;
    stateElements += layer.stateElements;
    bytes.stash += layer.stash;
    bytes.weightStash += layer.weightStash;
  }
  if (first == 0 && end == table.size()) {
    parameters -= table.tiedParameters;
    stateElements -= table.tiedStateElements;
  }
  int64_t parameterBytes = program::parameterBytes(table.types, parameters);
  bytes.parameterCopy = program::copyBytes(table.types, parameters);
  bytes.weights = parameterBytes + bytes.parameterCopy;
  bytes.optimizer = program::parameterBytes(table.types, stateElements);
  bytes.boundary = table.layers[end - 1].boundary;
  bytes.stash = std::max<int64_t>(bytes.stash, 1);
  bytes.weightStash = std::max<int64_t>(bytes.weightStash, 1);
  // A stage with only the embedding has almost no operations. Raise its costs,
  // because the cost of each part of an action must be positive.
  stage.cost = sum;
  for (int64_t schedule::StageCost::*time :
       {&schedule::StageCost::forward, &schedule::StageCost::backward,
        &schedule::StageCost::inputGradient,
        &schedule::StageCost::weightGradient, &schedule::StageCost::recompute})
    stage.cost.*time = std::max(sum.*time, parts);
  return stage;
}

std::vector<CutStage>
cutIntoStages(const LayerTable &table, int32_t stages,
              const std::vector<schedule::Recompute> &recompute,
              int64_t parts) {
  PrefixSums once = {0}, again = {0};
  for (const LayerCost &layer : table.layers) {
    once.push_back(once.back() + layer.forward + layer.backward);
    again.push_back(again.back() + layer.forward + layer.recompute +
                    layer.backward);
  }
  std::vector<const PrefixSums *> costs(stages, &once);
  for (size_t s = 0; s < recompute.size(); ++s)
    if (recompute[s] != schedule::Recompute::None)
      costs[s] = &again;
  std::vector<CutStage> cut;
  int32_t first = 0;
  for (int32_t end : balancedCuts(costs)) {
    cut.push_back(stageOf(table, first, end, parts));
    first = end;
  }
  return cut;
}

int64_t tiedBytes(const LayerTable &table,
                  const std::vector<CutStage> &stages) {
  return stages.size() > 1
             ? program::parameterBytes(table.types, table.tiedParameters)
             : 0;
}

} // namespace chimera::cost
