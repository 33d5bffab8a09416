//===- PackageTest.cpp - A model as a package of layers -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Package.h"
#include "runtime/program/Fields.h"
#include "runtime/program/Layers.h"
#include "test/runtime/program/SamplePackages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace chimera::program {
namespace {

TEST(PackageTest, acceptsTheSamples) {
  EXPECT_EQ(checkPackage(*samplePackage()), "");
  EXPECT_EQ(lossTerms(*samplePackage()), 0u);
  EXPECT_EQ(checkPackage(*weighedPackage()), "");
  EXPECT_EQ(lossTerms(*weighedPackage()), 1u);
  EXPECT_EQ(checkPackage(*packageWithTwoLossTerms()), "");
  EXPECT_EQ(lossTerms(*packageWithTwoLossTerms()), 2u);
}

struct Fault {
  const char *name;
  const char *message; ///< a part of the expected message
  std::function<void(PackageT &)> make;
};

class RefusedPackage : public testing::TestWithParam<Fault> {};

TEST_P(RefusedPackage, saysWhy) {
  auto package = samplePackage();
  GetParam().make(*package);
  EXPECT_NE(checkPackage(*package).find(GetParam().message), std::string::npos)
      << checkPackage(*package);
}

GraphT &forwardOf(PackageT &package, uint32_t kind) {
  return *package.kinds[kind]->graphs->forward;
}
GraphT &backwardOf(PackageT &package, uint32_t kind) {
  return *package.kinds[kind]->graphs->backward;
}

/// Adds native code for 4 samples to kind 1.
void addNative(PackageT &package, const std::string &hash) {
  auto archive = std::make_unique<NativeArchiveT>();
  archive->samples = 4;
  archive->sha256 = hash;
  package.kinds[1]->graphs->native.push_back(std::move(archive));
}

const Fault kFaults[] = {
    {"version", "expected version 3 of the format, got 1",
     [](PackageT &p) { p.version = 1; }},
    {"type", "a known type in which the layers compute",
     [](PackageT &p) { p.type = static_cast<DataType>(200); }},
    {"noLayers", "expected 1 to 16384 layers",
     [](PackageT &p) { p.layers.clear(); }},
    {"unknownKind", "layer 1: expected one of 3 kinds, got 3",
     [](PackageT &p) { p.layers[1]->kind = 3; }},
    {"controlCharacters", "printable characters",
     [](PackageT &p) { p.producer = "\x1b[31m"; }},
    {"noParameters", "kind 1: expected at least one parameter",
     [](PackageT &p) { p.kinds[1]->parameters.clear(); }},
    {"emptyShape", "extents of at least 1",
     [](PackageT &p) { p.kinds[1]->parameters[0]->shape = {0}; }},
    {"hugeShape", "at most 2^44 elements",
     [](PackageT &p) {
       p.kinds[1]->parameters[0]->shape = {int64_t{1} << 40, 1 << 20};
     }},
    {"deviation", "finite deviation of at least 0",
     [](PackageT &p) { p.kinds[0]->parameters[0]->deviation = -1; }},
    {"start", "kind 0: expected a known start of parameter 'weight'",
     [](PackageT &p) { p.kinds[0]->parameters[0]->start = Initialization(7); }},
    {"mean", "a finite mean and finite bounds of parameter 'weight'",
     [](PackageT &p) { p.kinds[0]->parameters[0]->mean = std::nan(""); }},
    {"bounds", "a lower bound below the upper one of parameter 'weight'",
     [](PackageT &p) {
       p.kinds[0]->parameters[0]->start = Initialization::Uniform;
     }},
    {"tail", "bounds within 4 deviations of the mean of parameter 'weight'",
     [](PackageT &p) {
       auto &parameter = *p.kinds[0]->parameters[0];
       parameter.start = Initialization::TruncatedNormal;
       parameter.low = 3;
       parameter.high = 4;
     }},
    {"zeroRow", "-1 or a row that exists as zero_row of parameter 'weight'",
     [](PackageT &p) { p.kinds[0]->parameters[0]->zero_row = 5; }},
    {"decay", "expected a known decay of parameter 'weight'",
     [](PackageT &p) {
       p.kinds[0]->parameters[0]->decay = static_cast<Decay>(3);
     }},
    {"twoOfOneName", "parameters of different names, got two 'block.scale'",
     [](PackageT &p) {
       p.layers[2]->kind = 2;
       p.kinds[2]->parameters[0]->name = "block.scale";
     }},
    {"constantBytes", "expected 16 bytes of a constant, got 0",
     [](PackageT &p) {
       auto constant = std::make_unique<ConstantT>();
       constant->type = TensorType::Int64;
       constant->shape = {2};
       p.kinds[1]->constants.push_back(std::move(constant));
     }},
    {"noGraphs", "expected the graphs of the kind",
     [](PackageT &p) { p.kinds[1]->graphs.reset(); }},
    {"boundaries",
     "layer 1: expected inputs equal to the outputs of the layer before",
     [](PackageT &p) {
       p.kinds[1]->graphs->inputs[0]->shape = {0, 2, 2};
     }},
    {"growthOfBoundaries",
     "layer 1: expected inputs equal to the outputs of the layer before",
     [](PackageT &p) {
       p.kinds[1]->graphs->inputs[0]->per_sample = {2, 0, 0};
     }},
    {"boundaryOfOneSize", "boundaries whose bytes grow with the samples",
     [](PackageT &p) {
       for (auto *tensor : {p.kinds[0]->graphs->outputs[0].get(),
                            p.kinds[1]->graphs->inputs[0].get()}) {
         tensor->shape[0] = 1;
         tensor->per_sample.clear();
       }
     }},
    {"boundaryWithAConstant", "boundaries whose bytes grow with the samples",
     [](PackageT &p) {
       for (auto *tensor : {p.kinds[0]->graphs->outputs[0].get(),
                            p.kinds[1]->graphs->inputs[0].get()})
         tensor->shape[0] = 1;
     }},
    {"boundaryOfPairs", "boundaries whose bytes grow with the samples",
     [](PackageT &p) {
       p.kinds[2]->graphs->labels[0]->per_sample = {1, 1};
     }},
    {"extentsPerSample", "a number per sample for each of 3 integers, got 2",
     [](PackageT &p) {
       p.kinds[1]->graphs->inputs[0]->per_sample = {1, 0};
     }},
    {"shrinkingExtent", "extents that do not shrink with the samples",
     [](PackageT &p) {
       p.kinds[1]->graphs->saved.push_back(perSample(TensorType::Float64, {2}));
       p.kinds[1]->graphs->saved[0]->per_sample[0] = -1;
     }},
    {"overflow", "integers below 2^63 for 2^20 samples",
     [](PackageT &p) {
       backwardOf(p, 2).calls.back()->arguments[1]->per_sample[0] = int64_t{1}
                                                                    << 43;
     }},
    {"numbersPerSample", "with the fields of its kind",
     [](PackageT &p) {
       ArgumentT &argument = *backwardOf(p, 2).calls.back()->arguments[1];
       argument.kind = ArgumentKind::Numbers;
     }},
    {"differentiable", "an entry of differentiable for each of 1 inputs",
     [](PackageT &p) { p.kinds[1]->graphs->differentiable.clear(); }},
    {"gradientOfTokens", "no differentiable inputs of the first layer",
     [](PackageT &p) { p.kinds[0]->graphs->differentiable = {1}; }},
    {"unwantedGradient", "no gradient of input 0, which is not differentiable",
     [](PackageT &p) { p.kinds[1]->graphs->differentiable = {0}; }},
    {"lossIsATensor", "only the loss, one number",
     [](PackageT &p) { p.layers[2]->kind = 1; }},
    {"labelsBefore", "labels only in the last layer",
     [](PackageT &p) {
       p.kinds[1]->graphs->labels.push_back(std::make_unique<TensorShapeT>());
     }},
    {"valueTwice", "value 1 is defined twice",
     [](PackageT &p) { forwardOf(p, 1).calls[0]->results = {1}; }},
    {"valueBeyond", "expected a value below ",
     [](PackageT &p) { forwardOf(p, 1).calls[0]->results = {9}; }},
    {"usedBeforeMade", "value 2 is used before it is defined",
     [](PackageT &p) { forwardOf(p, 1).calls[0]->arguments[0]->values = {2}; }},
    {"noValue", "is used before it is defined",
     [](PackageT &p) {
       forwardOf(p, 1).calls[0]->arguments[0]->values = {-1};
     }},
    {"noOutput", "forward: expected it to make output 0",
     [](PackageT &p) { forwardOf(p, 1).outputs.clear(); }},
    {"unknownPort", "expected a parameter below 1, got 1",
     [](PackageT &p) { forwardOf(p, 1).inputs[0].mutate_index(1); }},
    {"gradientOfNoInput", "kind 1: backward: expected a input gradient below 1",
     [](PackageT &p) {
       for (Port &port : backwardOf(p, 1).outputs)
         if (port.role() == Role::InputGradient)
           port.mutate_index(UINT32_MAX);
     }},
    {"portTwice", "one port for parameter 0, got two",
     [](PackageT &p) {
       forwardOf(p, 1).inputs[1] = {1, 0, Role::Parameter};
     }},
    {"roleOfAnotherGraph", "unexpected port of the role output gradient",
     [](PackageT &p) {
       forwardOf(p, 1).inputs[0].mutate_role(Role::OutputGradient);
     }},
    {"unknownRole", "unexpected port of the role unknown",
     [](PackageT &p) { forwardOf(p, 1).inputs[0].mutate_role(Role(99)); }},
    {"argumentWithoutItsNumber", "with the fields of its kind",
     [](PackageT &p) {
       backwardOf(p, 0).calls[0]->arguments[2]->integers.clear();
     }},
    {"argumentOfTwoKinds", "with the fields of its kind",
     [](PackageT &p) {
       backwardOf(p, 0).calls[0]->arguments[2]->values = {0};
     }},
    {"unknownArgument", "with the fields of its kind",
     [](PackageT &p) {
       backwardOf(p, 0).calls[0]->arguments[2]->kind = ArgumentKind(99);
     }},
    {"keptTwice", "each kept value once",
     [](PackageT &p) {
       p.kinds[1]->graphs->kept = {1, 1};
     }},
    {"keptBeyond", "each kept value once",
     [](PackageT &p) {
       p.kinds[1]->graphs->kept = {1, 6};
     }},
    {"keptWithoutAShape", "a shape for each of 2 kept values, got 1",
     [](PackageT &p) { p.kinds[1]->graphs->kept_shapes.pop_back(); }},
    {"nativeCodeByAPath", "64 hexadecimal digits, got '../code'",
     [](PackageT &p) { addNative(p, "../code"); }},
    {"nativeCodeTwice", "native code once for each number of samples, got two",
     [](PackageT &p) {
       addNative(p, std::string(64, 'a'));
       addNative(p, std::string(64, 'b'));
     }},
    {"manyValues", "at most 2^20 values",
     [](PackageT &p) { forwardOf(p, 1).values = (1 << 20) + 1; }},
    {"operations", "below 2^61",
     [](PackageT &p) {
       p.kinds[1]->graphs->forward_flops = Operations(0, 0, uint64_t{1} << 63);
     }},
    {"lossBefore",
     "layer 1: expected a loss from the backward only in the "
     "last layer",
     [](PackageT &p) {
       backwardOf(p, 1).outputs.emplace_back(1, 0, Role::Output);
     }},
    {"lossTwice", "backward: expected one port for output 0, got two",
     [](PackageT &p) {
       for (int i = 0; i < 2; ++i)
         backwardOf(p, 2).outputs.emplace_back(1, 0, Role::Output);
     }},
    {"weightBefore", "layer 1: expected a weight only in the last layer",
     [](PackageT &p) {
       // Give layer 1 the graph of the last layer that computes the weight of
       // the loss. Remove its inputs, because only the last layer has labels.
       auto &weight = p.kinds[1]->graphs->weight;
       weight = std::move(weighedPackage()->kinds[2]->graphs->weight);
       weight->inputs.clear();
       weight->calls[0]->arguments.clear();
     }},
    {"weightOfInputs", "weight: unexpected port of the role input",
     [](PackageT &p) {
       p = std::move(*weighedPackage());
       p.kinds[2]->graphs->weight->inputs[0].mutate_role(Role::Input);
     }},
    {"weightIsNothing", "weight: expected it to make 1 to 16 numbers, got 0",
     [](PackageT &p) {
       p = std::move(*weighedPackage());
       p.kinds[2]->graphs->weight->outputs.clear();
     }},
    {"scalesOfAnotherType", "the last label of a loss of 2 terms to be",
     [](PackageT &p) {
       p = std::move(*packageWithTwoLossTerms());
       p.kinds[2]->graphs->labels[1]->type = TensorType::Float32;
     }},
    {"noScales", "the last label of a loss of 2 terms to be loss_scales",
     [](PackageT &p) {
       p = std::move(*packageWithTwoLossTerms());
       p.labels[1] = "others";
     }},
    {"scalesOfOneTerm", "of a loss of several terms alone",
     [](PackageT &p) {
       p = std::move(*weighedPackage());
       p.labels[0] = kLossScales;
     }},
    {"weightOfScales", "the last label of a loss of 2 terms to be",
     [](PackageT &p) {
       p = std::move(*packageWithTwoLossTerms());
       p.kinds[2]->graphs->weight->inputs[0].mutate_index(1);
     }},
    {"inputWithoutAName", "a name for each input, got 0 for 1",
     [](PackageT &p) { p.inputs.clear(); }},
    {"labelsOfOneName", "one label 'targets', got two",
     [](PackageT &p) { p.labels.push_back("targets"); }},
    {"inputWithoutRows", "each input to have a row for each sample",
     [](PackageT &p) {
       p.kinds[0]->graphs->inputs[0]->shape = {2, 0};
       p.kinds[0]->graphs->inputs[0]->per_sample = {0, 1};
     }},
    {"inputOfSquares", "each input to have a row for each sample",
     [](PackageT &p) {
       p.divisible = false;
       p.kinds[0]->graphs->inputs[0]->shape = {0, 0};
       p.kinds[0]->graphs->inputs[0]->per_sample = {1, 1};
     }},
    {"logitsBefore", "layer 1: expected logits only in the last layer",
     [](PackageT &p) {
       p.kinds[1]->graphs->logits =
           std::make_unique<GraphT>(*p.kinds[1]->graphs->forward);
       p.kinds[1]->graphs->vocabulary = 3;
     }},
    {"logitsOfLabels", "logits: unexpected port of the role label",
     [](PackageT &p) {
       auto &logits = p.kinds[2]->graphs->logits;
       logits = std::make_unique<GraphT>(*p.kinds[2]->graphs->forward);
       logits->inputs[1].mutate_role(Role::Label);
     }},
    {"logitsOfNoVocabulary", "of a vocabulary of 1 to 2^30",
     [](PackageT &p) {
       p.kinds[2]->graphs->logits =
           std::make_unique<GraphT>(*p.kinds[2]->graphs->forward);
     }},
    {"tied", "a tied parameter of the first layer and of the last one",
     [](PackageT &p) { p.tied = std::make_unique<TiedParameter>(0, 0); }},
};

INSTANTIATE_TEST_SUITE_P(Package, RefusedPackage, testing::ValuesIn(kFaults),
                         [](const auto &fault) {
                           return std::string(fault.param.name);
                         });

TEST(PackageTest, isAModelOfItsLayers) {
  PackageT model = *samplePackage();
  EXPECT_EQ(checkPackage(model), "");
  EXPECT_EQ(layerCount(model), 3u);
  EXPECT_EQ(parameterCount(model, 0, 3), 15 + 3 + 3);
  EXPECT_EQ(parameterName(model, 1, 0), "block.scale");
  EXPECT_EQ(inputBytes(model, 4), 4 * 2 * 8);
  EXPECT_EQ(labelBytes(model, 2), 2 * 2 * 8);
  EXPECT_EQ(inputBytes(model, 3), 3 * 2 * 8);
  EXPECT_EQ(boundaryBytes(model, 4, 0), 4 * 2 * 3 * 8);
  EXPECT_EQ(contextOf(model), 2);
  EXPECT_EQ(inputFields(model).at(0).name, "tokens");
  EXPECT_EQ(labelFields(model).at(0).shape, std::vector<int64_t>{2});
  EXPECT_EQ(sampleBytes(labelFields(model)), 16);
  // The embedding saves its tokens, the other layers their inputs.
  EXPECT_EQ(layerCost(model, 4, 0).stashBytes, 4 * 2 * 8);
  EXPECT_EQ(layerCost(model, 2, 1).stashBytes, 2 * 2 * 3 * 8);
  EXPECT_EQ(layerCost(model, 2, 1).forwardFlops, 20);
}

TEST(PackageTest, servesEveryNumberOfSamples) {
  PackageT model = *samplePackage();
  const Types types{DataType::Float64, DataType::Float64};
  for (uint32_t samples : {1u, 3u, 8u, kMaxSamples})
    for (uint32_t parts : {1u, samples}) {
      EXPECT_EQ(checkTypesAndSizes(model, types, samples, parts), "");
      EXPECT_EQ(layerCost(model, samples, 1).stashBytes,
                int64_t{samples} * 2 * 3 * 8);
      EXPECT_EQ(layerCost(model, samples, 2).weightStashBytes,
                int64_t{samples} * 2 * 3 * 8 + 8);
    }
  EXPECT_EQ(checkTypesAndSizes(model, types, kMaxSamples + 1, 1),
            "expected 1 to 1048576 samples in a micro-batch, got 1048577");
  auto &saved = model.kinds[1]->graphs->saved;
  saved.push_back(perSample(TensorType::Float64, {1 << 20, 1 << 10}));
  EXPECT_EQ(checkTypesAndSizes(model, types, 1 << 14, 1), "");
  EXPECT_EQ(checkTypesAndSizes(model, types, (1 << 14) + 1, 1),
            "expected tensors of at most 2^44 elements, but 16385 samples in a "
            "micro-batch need larger ones: use fewer");
  // A number for each pair of samples.
  model.kinds[1]->graphs->forward_flops = Operations(1, 2, 1ull << 40);
  EXPECT_EQ(layerCost(model, 3, 1).forwardFlops, 7 + (9ll << 40));
  EXPECT_EQ(checkTypesAndSizes(model, types, 1 << 11, 1),
            "expected less than 2^61 operations in a layer, but 2048 samples "
            "in a micro-batch need more: use fewer");
}

TEST(PackageTest, isDividedIfItsLossMayBe) {
  PackageT model = *samplePackage();
  const Types types{DataType::Float64, DataType::Float64};
  model.divisible = false;
  EXPECT_EQ(checkTypesAndSizes(model, types, 4, 1), "");
  EXPECT_EQ(checkTypesAndSizes(model, types, 4, 2),
            "expected whole micro-batches, because the exporter found that "
            "this model cannot compute parts of them, got 2 parts: use a "
            "schedule that does not divide micro-batches");
  // Boundaries need not grow with the samples then.
  for (auto *tensor : {model.kinds[0]->graphs->outputs[0].get(),
                       model.kinds[1]->graphs->inputs[0].get()})
    tensor->shape[0] = 1;
  EXPECT_EQ(checkPackage(model), "");
}

TEST(PackageTest, logitsAreAmongTheLargestTensors) {
  auto package = samplePackage();
  LayerKindT &last = *package->kinds[2];
  const int64_t before = largestBytes(last, /*samples=*/4, 8);
  last.graphs->vocabulary = 1000;
  EXPECT_EQ(largestBytes(last, 4, 8), before);
  last.graphs->logits = std::make_unique<GraphT>(*last.graphs->forward);
  // Each sample has two labels.
  EXPECT_EQ(largestBytes(last, 4, 8), 4 * 2 * 1000 * 8);
  last.graphs->vocabulary = 1u << 30;
  EXPECT_EQ(largestBytes(last, UINT32_MAX, INT64_MAX), INT64_MAX);
}

TEST(PackageTest, isUsedInItsType) {
  PackageT model = *samplePackage();
  EXPECT_NE(
      checkTypesAndSizes(model, {DataType::Float32, DataType::Float32}, 4, 1)
          .find("the type in which the package computes, float64, got float32"),
      std::string::npos);
  EXPECT_NE(
      checkTypesAndSizes(model, {DataType::Float32, DataType::BFloat16}, 4, 1)
          .find(
              "the type in which the package computes, float64, got bfloat16"),
      std::string::npos);
}

TEST(PackageTest, sizesDoNotWrap) {
  auto package = samplePackage();
  LayerGraphsT &graphs = *package->kinds[1]->graphs;
  for (int i = 0; i < 1 << 18; ++i) {
    auto tensor = std::make_unique<TensorShapeT>();
    tensor->type = TensorType::Float64;
    tensor->shape = {int64_t{1} << 44};
    graphs.saved.push_back(std::move(tensor));
  }
  EXPECT_EQ(bytesOf(graphs.saved, 1), INT64_MAX);
  EXPECT_EQ(stashBytes(graphs, 1), INT64_MAX);
}

TEST(PackageTest, fileBytesAreNoFewerThanItTakes) {
  const auto package = samplePackage();
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Package::Pack(builder, package.get()));
  EXPECT_GE(fileBytes(*package), builder.GetSize());
  EXPECT_LE(fileBytes(*package), 10 * builder.GetSize());
}

} // namespace
} // namespace chimera::program
