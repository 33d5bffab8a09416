//===- GraphStageFixture.h - A small stage of graphs ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model of these tests is samplePackage(), whose loss and gradients are
// known: the loss is the sum of embedding[token] * scale * factors.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_MODEL_GRAPH_GRAPHSTAGEFIXTURE_H
#define CHIMERA_TEST_RUNTIME_MODEL_GRAPH_GRAPHSTAGEFIXTURE_H

#include "runtime/model/graph/GraphStage.h"
#include "runtime/program/Layers.h"
#include "test/runtime/model/SmallModel.h"
#include "test/runtime/program/SamplePackages.h"

#include <gtest/gtest.h>

namespace chimera::runtime {

using test::bytesOf;

/// A program whose stages have these numbers of layers.
inline program::ProgramT sampleProgram(
    const std::vector<uint32_t> &layers,
    std::unique_ptr<program::PackageT> package = program::samplePackage()) {
  program::ProgramT program;
  program.model = std::move(package);
  program.optimizer = std::make_unique<program::OptimizerT>();
  program.optimizer->name = "adamw";
  program.weight_type = program.activation_type = program::DataType::Float64;
  program.micro_batch_size = 4;
  program.micro_batches = program.data_parallel = 1;
  uint32_t first = 0;
  for (uint32_t count : layers) {
    const auto weights = static_cast<uint64_t>(
        8 * program::parameterCount(*program.model, first, count));
    program.stages.emplace_back(first, count, 1, 1, 1, 1, 1, 0, weights,
                                2 * weights, 1, 1,
                                static_cast<uint64_t>(program::boundaryBytes(
                                    *program.model, 4, first + count - 1)),
                                0);
    first += count;
  }
  return program;
}

class GraphStageTest : public testing::Test {
protected:
  const std::vector<double> embedding = {1, 2,  3,  4,  5,  6,  7, 8,
                                         9, 10, 11, 12, 13, 14, 15};
  const std::vector<double> scale = {2, 3, 5}, factors = {1, -1, 2};
  std::vector<int64_t> tokens = {0, 1, 2, 3, 4, 0, 1, 1};
  std::vector<int64_t> labels = {0, 0, 0, 0, 0, 0, 0, 0};

  double expectedLoss() const {
    double loss = 0;
    for (int64_t token : tokens)
      for (size_t c = 0; c < 3; ++c)
        loss += embedding[static_cast<size_t>(token) * 3 + c] * scale[c] *
                factors[c];
    return loss;
  }
  std::vector<double> expectedGradients() const {
    std::vector<double> gradients(15 + 3 + 3);
    for (int64_t token : tokens)
      for (size_t c = 0; c < 3; ++c) {
        const size_t at = static_cast<size_t>(token) * 3 + c;
        gradients[at] += scale[c] * factors[c];
        gradients[15 + c] += embedding[at] * factors[c];
        gradients[18 + c] += embedding[at] * scale[c];
      }
    return gradients;
  }
  std::vector<double> weights() const {
    std::vector<double> all = embedding;
    all.insert(all.end(), scale.begin(), scale.end());
    all.insert(all.end(), factors.begin(), factors.end());
    return all;
  }
};

} // namespace chimera::runtime

#endif // CHIMERA_TEST_RUNTIME_MODEL_GRAPH_GRAPHSTAGEFIXTURE_H
