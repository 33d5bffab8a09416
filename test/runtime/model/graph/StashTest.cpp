//===- StashTest.cpp - A stash has the declared number of bytes -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Tensors.h"
#include "test/runtime/model/SmallModel.h"

#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

namespace chimera::runtime {
namespace {

using namespace test;

int64_t
declared(const program::ProgramT &program, uint32_t stage,
         int64_t program::LayerCost::*bytes = &program::LayerCost::stashBytes) {
  const program::Stage &layers = program.stages[stage];
  int64_t sum = 0;
  for (uint32_t l = 0; l < layers.layers(); ++l)
    sum += program::layerCost(*program.model, program.micro_batch_size,
                              layers.first_layer() + l).*
           bytes;
  return sum;
}

// Runs the forward of each stage twice, and measures the memory of the second
// one. Memory that the first one allocates and keeps does not belong to the
// stash.
template <typename T, typename A = T>
void compareStash(const Sizes &sizes, std::vector<uint32_t> layers) {
  program::ProgramT program = smallProgram(sizes, layers);
  TensorMeter meter;
  Line<T, A> line(program);
  line.forward({0, 0});
  line.backward({0, 0});
  for (auto &part : line.parts)
    EXPECT_EQ(part.stash, nullptr);
  const int64_t before = meter.currentBytes();
  line.forward({1, 0});
  for (uint32_t s = 0; s < program.stages.size(); ++s) {
    const int64_t held = meter.currentBytes();
    line.parts[s].stash.reset();
    const int64_t measured = held - meter.currentBytes();
    EXPECT_EQ(measured, declared(program, s))
        << "stage " << s << " of " << program.stages[s].layers()
        << " layers from " << program.stages[s].first_layer() << ", dropout "
        << sizes.dropout;
  }
  EXPECT_EQ(meter.currentBytes(), before);
}

void compareStash(Sizes sizes, std::vector<uint32_t> layers) {
  for (double dropout : {0.0, 0.25}) {
    sizes.dropout = dropout;
    sizes.type = program::DataType::Float64;
    compareStash<double>(sizes, layers);
    sizes.type = program::DataType::Float32;
    compareStash<float>(sizes, layers);
    Sizes mixed = sizes;
    mixed.activations = program::DataType::BFloat16;
    compareStash<float, c10::BFloat16>(mixed, layers);
  }
}

// The weight stash is the memory that a stage keeps between the two halves of a
// split backward.
template <typename T, typename A = T>
void compareWeightStash(Sizes sizes, std::vector<uint32_t> layers) {
  for (double dropout : {0.0, 0.25}) {
    sizes.dropout = dropout;
    program::ProgramT program = smallProgram(sizes, layers);
    TensorMeter meter;
    Line<T, A> line(program);
    const int64_t before = meter.currentBytes();
    line.forward({0, 0});
    line.inputGradient({0, 0});
    for (uint32_t s = 0; s < program.stages.size(); ++s) {
      const int64_t held = meter.currentBytes();
      line.parts[s].stage->weightGradient(
          {0, 0}, std::move(line.parts[s].stash),
          bytesOf(line.parts[s].weights), bytesOf(line.parts[s].gradient));
      const int64_t measured = held - meter.currentBytes();
      EXPECT_EQ(measured,
                declared(program, s, &program::LayerCost::weightStashBytes))
          << "stage " << s << ", dropout " << dropout;
    }
    EXPECT_EQ(meter.currentBytes(), before);
  }
}

TEST(StashTest, betweenInputAndWeightGradient) {
  Sizes sizes{.layers = 3,
              .heads = 4,
              .width = 64,
              .context = 48,
              .vocabulary = 100,
              .microBatchSize = 5};
  for (auto layers :
       std::vector<std::vector<uint32_t>>{{1, 1, 1, 1, 1}, {2, 3}, {5}}) {
    sizes.type = program::DataType::Float64;
    compareWeightStash<double>(sizes, layers);
    sizes.type = program::DataType::Float32;
    compareWeightStash<float>(sizes, layers);
    Sizes mixed = sizes;
    mixed.activations = program::DataType::BFloat16;
    compareWeightStash<float, c10::BFloat16>(mixed, layers);
  }
}

// The stash of a part is as large as the stash of a micro-batch of this size.
TEST(StashTest, ofAPart) {
  Sizes sizes{.dropout = 0.25, .microBatchSize = 4};
  program::ProgramT program = smallProgram(sizes, {1, 1, 1, 1});
  program.pipelines.push_back(std::make_unique<program::PipelineT>());
  program.pipelines[0]->backward_parts = 2;
  sizes.microBatchSize = 2;
  const program::ProgramT half = smallProgram(sizes, {1, 1, 1, 1});
  TensorMeter meter;
  Line<double> line(program);
  auto ofHalf = [](Bytes bytes) { return bytes.first(bytes.size() / 2); };
  for (MicroBatch microBatch : {MicroBatch{0, 0, 0, 2}, MicroBatch{1, 0, 1, 2}})
    for (size_t s = 0; s < 4; ++s) {
      auto &part = line.parts[s];
      const int64_t before = meter.currentBytes();
      std::unique_ptr<Stash> stash = part.stage->forward(
          microBatch,
          ofHalf(s ? bytesOf(line.parts[s - 1].output) : bytesOf(line.tokens)),
          s == 3 ? ofHalf(bytesOf(line.labels)) : Bytes(),
          bytesOf(part.weights), {}, ForwardMode::Stash);
      EXPECT_EQ(meter.currentBytes() - before,
                declared(half, static_cast<uint32_t>(s)))
          << "stage " << s << ", step " << microBatch.step;
    }
}

TEST(StashTest, layerByLayer) { compareStash(Sizes{}, {1, 1, 1, 1}); }

TEST(StashTest, severalLayers) { compareStash(Sizes{}, {2, 2}); }

TEST(StashTest, wholeModel) { compareStash(Sizes{}, {4}); }

// The stash does not contain the gradients of the two uses of the matrix.
TEST(StashTest, tiedHead) {
  for (auto layers : std::vector<std::vector<uint32_t>>{{2, 2}, {4}}) {
    compareStash({.tied = true}, layers);
    compareWeightStash<double>({.tied = true}, layers);
  }
}

TEST(StashTest, otherSizes) {
  compareStash({.layers = 3,
                .heads = 4,
                .width = 64,
                .context = 48,
                .vocabulary = 100,
                .microBatchSize = 5},
               {2, 1, 2});
  compareStash({.layers = 1,
                .heads = 1,
                .width = 16,
                .context = 1,
                .vocabulary = 2,
                .microBatchSize = 1},
               {1, 2});
}

TEST(StashTest, longContext) {
  // The context exceeds the block sizes of the fused attention.
  compareStash({.layers = 1,
                .heads = 2,
                .width = 16,
                .context = 600,
                .vocabulary = 3,
                .microBatchSize = 2},
               {1, 1, 1});
}

} // namespace
} // namespace chimera::runtime
