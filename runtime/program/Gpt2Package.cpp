//===- Gpt2Package.cpp - GPT-2 as a package -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Gpt2Package.h"

#include "runtime/program/Fields.h"
#include "runtime/program/Gpt2Kinds.h"
#include "runtime/program/Package.h"

#include <memory>

namespace chimera::program {

static std::string checkSizes(const ModelT &model) {
  // The maximum of each size except the number of layers. No model has larger
  // sizes. Below this limit, the number of parameters cannot overflow.
  constexpr uint32_t kLargest = 1 << 20;
  // A package has at most 2^14 layers, with embedding and head.
  constexpr uint32_t kMaxLayers = (1 << 14) - 2;
  struct {
    const char *name;
    uint32_t value;
    uint32_t most = kLargest;
  } const sizes[] = {{"layers", model.layers, kMaxLayers},
                     {"heads", model.heads},
                     {"width", model.width},
                     {"context", model.context},
                     {"vocabulary", model.vocabulary}};
  for (const auto &size : sizes)
    if (size.value == 0 || size.value > size.most)
      return std::string("expected ") + size.name + " between 1 and " +
             std::to_string(size.most) + ", got " + std::to_string(size.value);
  if (model.width % model.heads != 0)
    return "expected a width divisible by the number of heads, got width " +
           std::to_string(model.width) + " and " + std::to_string(model.heads) +
           " heads";
  // This form of the condition also refuses NaN.
  if (!(model.dropout >= 0 && model.dropout < 1))
    return "expected dropout in [0, 1), got " + std::to_string(model.dropout);
  return "";
}

/// The package for sizes that checkSizes accepts.
static std::unique_ptr<PackageT> packageOf(const ModelT &model, DataType type) {
  auto package = std::make_unique<PackageT>();
  package->version = kPackageVersion;
  package->producer = "chimera";
  package->type = type;
  package->inputs = {kInputIds};
  package->labels = {kLabels};
  package->kinds.push_back(gpt2Embedding(model, type));
  package->kinds.push_back(gpt2Block(model, type));
  package->kinds.push_back(gpt2Head(model, type));
  for (uint32_t k = 0; k < model.layers + 2; ++k) {
    auto layer = std::make_unique<LayerT>();
    layer->kind = k == 0 ? 0 : k <= model.layers ? 1 : 2;
    layer->path = "layers." + std::to_string(k) + ".";
    package->layers.push_back(std::move(layer));
  }
  // The token embedding, and the matrix of the head.
  if (model.tied)
    package->tied = std::make_unique<TiedParameter>(0, 2);
  return package;
}

/// The package as it is in a file.
static std::string bytesOf(const PackageT &package) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Package::Pack(builder, &package));
  return {reinterpret_cast<const char *>(builder.GetBufferPointer()),
          builder.GetSize()};
}

std::string buildGpt2(ModelT &model, DataType type) {
  if (std::string problem = checkSizes(model); !problem.empty())
    return problem;
  model.package = packageOf(model, type);
  return checkPackage(*model.package);
}

std::string checkGpt2(const ModelT &model) {
  if (std::string problem = checkSizes(model); !problem.empty())
    return problem;
  if (bytesOf(*model.package) !=
      bytesOf(*packageOf(model, model.package->type)))
    return "expected the package of a GPT-2 of the model's sizes, got another: "
           "compile it with chimera-compile of this version";
  return checkPackage(*model.package);
}

} // namespace chimera::program
