//===- Models.h - Models and machines for tests -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_COST_MODELS_H
#define CHIMERA_TEST_COMPILER_COST_MODELS_H

#include "compiler/cost/Machine.h"
#include "compiler/cost/Model.h"
#include "runtime/program/Optimizer.h"
#include "test/runtime/program/BuiltGpt2.h"

#include <random>

namespace chimera::cost {

/// The sizes of a GPT-2 of one layer, with an embedding and a head.
inline constexpr program::SmallGpt2 kSmallModel{
    .layers = 1, .heads = 2, .width = 16, .context = 8, .vocabulary = 32};

inline program::PackageT smallModel() {
  return program::builtGpt2(kSmallModel);
}

inline program::OptimizerT optimizerNamed(const char *name) {
  program::OptimizerT optimizer;
  optimizer.name = name;
  return optimizer;
}

inline constexpr program::Types kFloats = {program::DataType::Float32,
                                           program::DataType::Float32};

/// A model of `layers` bare layers (only times and sizes). They are drawn at
/// random from the seed.
inline Model someModel(int32_t layers, uint32_t seed) {
  std::mt19937 random(seed);
  auto upTo = [&](int64_t most) {
    return 1 + static_cast<int64_t>(random() % most);
  };
  std::vector<BareLayer> all;
  for (int32_t i = 0; i < layers; ++i)
    all.push_back({100 + upTo(20), 90 + upTo(40), 80 + upTo(50),
                   1000 + upTo(100), 5000 + upTo(2000), 4000 + upTo(3000),
                   4 * upTo(50)});
  return Model(all, kFloats, optimizerNamed(program::kAdamW));
}

/// A machine on which all computations and messages take time.
inline Machine someMachine(int32_t devices, int64_t memory) {
  Machine machine;
  machine.devices = devices;
  machine.memory = memory;
  machine.speed = 1000000000;
  machine.layerOverhead = 20;
  machine.memoryBandwidth = 500000000000;
  machine.network.link = {{15, 100, schedule::kMebibyte}, {2, 0, 1}, {3, 0, 1}};
  machine.network.allReduceMessage = {10, 1 << 12, schedule::kMebibyte};
  return machine;
}

/// The machine of someMachine with `onNode` devices per node. Links inside a
/// node are faster.
inline Machine someNodes(int32_t devices, int64_t memory, int32_t onNode) {
  Machine machine = someMachine(devices, memory);
  machine.network.node = {onNode, machine.network};
  schedule::LinkClass &links = machine.network.node->links;
  links.link = {{3, 10, schedule::kMebibyte}, {1, 0, 1}, {1, 0, 1}};
  links.allReduceMessage = {2, 1 << 8, schedule::kMebibyte};
  return machine;
}

/// The machine of someNodes. The devices of a node share `cores` cores.
inline Machine someSharedNodes(int32_t devices, int64_t memory, int32_t onNode,
                               int32_t cores) {
  Machine machine = someNodes(devices, memory, onNode);
  machine.network.node->cores = cores;
  return machine;
}

} // namespace chimera::cost

#endif // CHIMERA_TEST_COMPILER_COST_MODELS_H
