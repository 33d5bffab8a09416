//===- graph-mutants.cpp - Randomly changed packages ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes the JSON descriptions of packages at random. Trains the accepted
// packages for one step. See Mutants.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/BFloat16.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Package.h"
#include "test/runtime/model/Mutants.h"

#include <cmath>
#include <cstdio>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
/// Initial values that are small and of both signs.
class Values : public InitialValues {
public:
  void read(const std::string &, program::DataType type,
            const std::vector<int64_t> &, Bytes memory) const override {
    auto fill = [&]<typename T>(T *values) {
      for (size_t i = 0; i < memory.size() / sizeof(T); ++i)
        values[i] = static_cast<T>(0.1 * std::sin(static_cast<double>(i)));
    };
    if (type == program::DataType::Float64)
      fill(reinterpret_cast<double *>(memory.data()));
    else if (type == program::DataType::BFloat16)
      fill(reinterpret_cast<BFloat16 *>(memory.data()));
    else
      fill(reinterpret_cast<float *>(memory.data()));
  }
};

/// Tokens and labels that are 0.
class Zeros : public DataSource {
  void load(program::ValueKind, MicroBatch, Bytes output) override {
    std::ranges::fill(output, std::byte(0));
  }
};
} // namespace

/// Trains the package's model for one step as a single stage, with whole and
/// with split backwards, and with the loss weights of its labels. Then predicts
/// the next token. If the package computes in bfloat16, its weights are float32
/// or, if `hasNarrowWeights`, bfloat16. Throws if the package is refused.
static void train(std::unique_ptr<program::PackageT> package,
                  bool hasNarrowWeights) {
  program::ProgramT program;
  program.model = std::move(package);
  const program::PackageT &own = *program.model;
  program.optimizer = std::make_unique<program::OptimizerT>();
  program.optimizer->name = "adamw";
  program.activation_type = own.type;
  program.weight_type =
      own.type == program::DataType::BFloat16 && !hasNarrowWeights
          ? program::DataType::Float32
          : own.type;
  program.micro_batch_size = 2;
  const uint32_t layers = program::layerCount(*program.model);
  constexpr int64_t kMost = int64_t{1} << 26;
  const int64_t elements = program::parameterCount(*program.model, 0, layers);
  const int64_t inputs =
      program::inputBytes(*program.model, program.micro_batch_size);
  const int64_t labels =
      program::labelBytes(*program.model, program.micro_batch_size);
  // A proof would refuse programs with such sizes as too large for the machine.
  if (elements > kMost || inputs > kMost || labels > kMost)
    throw std::runtime_error("too large");
  const program::Types types = program::typesOf(program);
  const auto bytes =
      static_cast<size_t>(program::parameterBytes(types, elements));
  const auto copy = static_cast<size_t>(program::copyBytes(types, elements));
  std::vector<std::byte> weights(bytes + copy), gradient(bytes),
      state(2 * bytes);
  std::vector<std::byte> input(static_cast<size_t>(inputs)),
      label(static_cast<size_t>(labels));
  auto stage = makeWholeModel(program, std::make_shared<Values>());
  stage->initialize(weights, state);
  program.micro_batches = program.data_parallel = 1;
  auto data = withLossWeights(program, std::make_unique<Zeros>());
  data->load(program::ValueKind::Labels, {}, label);
  data->lossWeight({});
  double loss = 0;
  const Bytes lossBytes = std::as_writable_bytes(std::span(&loss, 1));
  auto forward = [&] {
    return stage->forward({}, input, label, weights, lossBytes);
  };
  stage->backward({}, forward(), lossBytes, weights, gradient, {},
                  WgradMode::Overwrite);
  auto rest = stage->inputGradient({}, forward(), lossBytes, weights, {});
  stage->weightGradient({}, std::move(rest), weights, gradient);
  stage->optimizerStep({0, 1e-3, 1}, gradient, weights, state);
  if (program::graphsOf(own, layers - 1).logits) {
    const int64_t token = 0;
    makePredictor(program, std::make_shared<Values>())->nextLogits({&token, 1});
  }
}

int main(int argc, char **argv) {
  CLI::App app("Changes packages and runs what is accepted.");
  std::vector<std::string> files;
  app.add_option("FILES", files, "Descriptions (model.json)")->required();
  const MutantOptions options(app);
  CLI11_PARSE(app, argc, argv);
  countTensorBytes();
  setThreads(1);

  std::vector<Json> descriptions;
  for (const std::string &file : files)
    descriptions.push_back(Json::parse(std::ifstream(file)));
  using Type = std::optional<program::DataType>;
  const Type types[] = {std::nullopt, program::DataType::BFloat16};
  // The packages themselves must run. Otherwise all their mutants are refused,
  // and nothing is tested. A model may have no package for bfloat16.
  try {
    for (const Json &description : descriptions)
      for (const Type type : types) {
        std::string error;
        if (auto package =
                program::parsePackage(description.dump(), type, error)) {
          train(std::make_unique<program::PackageT>(*package), false);
          if (package->type == program::DataType::BFloat16)
            train(std::move(package), true);
        } else if (!type) {
          throw std::runtime_error(error);
        }
      }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "a package does not run: %s\n", error.what());
    return 1;
  }
  auto open = [&](uint64_t number, Random &random) {
    Json mutant = descriptions[number % descriptions.size()];
    for (uint64_t i = 0, e = below(random, 4); number > 0 && i <= e; ++i)
      change(pick(mutant, random), mutant, random);
    std::string error;
    auto package =
        program::parsePackage(mutant.dump(), types[below(random, 2)], error);
    if (!package)
      throw std::runtime_error(error);
    return package;
  };

  return runMutants(options, uint64_t{8} << 30, open,
                    [](auto package, Random &random) {
                      train(std::move(package), below(random, 2) == 1);
                    });
}
