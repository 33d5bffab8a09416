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

static std::string checkSizes(const Gpt2Sizes &gpt2) {
  // The maximum of each size except the number of layers. No model has larger
  // sizes. Below this limit, the number of parameters cannot overflow.
  constexpr uint32_t kLargest = 1 << 20;
  // A package has at most 2^14 layers, with embedding and head.
  constexpr uint32_t kMaxLayers = (1 << 14) - 2;
  struct {
    const char *name;
    uint32_t value;
    uint32_t most = kLargest;
  } const sizes[] = {{"layers", gpt2.layers, kMaxLayers},
                     {"heads", gpt2.heads},
                     {"width", gpt2.width},
                     {"context", gpt2.context},
                     {"vocabulary", gpt2.vocabulary}};
  for (const auto &size : sizes)
    if (size.value == 0 || size.value > size.most)
      return std::string("expected ") + size.name + " between 1 and " +
             std::to_string(size.most) + ", got " + std::to_string(size.value);
  if (gpt2.width % gpt2.heads != 0)
    return "expected a width divisible by the number of heads, got width " +
           std::to_string(gpt2.width) + " and " + std::to_string(gpt2.heads) +
           " heads";
  // This form of the condition also refuses NaN.
  if (!(gpt2.dropout >= 0 && gpt2.dropout < 1))
    return "expected dropout in [0, 1), got " + std::to_string(gpt2.dropout);
  return "";
}

std::unique_ptr<PackageT> gpt2Package(const Gpt2Sizes &sizes, DataType type,
                                      std::string &error) {
  error = checkSizes(sizes);
  if (!error.empty())
    return nullptr;
  auto package = std::make_unique<PackageT>();
  package->version = kPackageVersion;
  package->producer = kGpt2Producer;
  package->type = type;
  package->inputs = {kInputIds};
  package->labels = {kLabels};
  package->kinds.push_back(gpt2Embedding(sizes, type));
  package->kinds.push_back(gpt2Block(sizes, type));
  package->kinds.push_back(gpt2Head(sizes, type));
  for (uint32_t k = 0; k < sizes.layers + 2; ++k) {
    auto layer = std::make_unique<LayerT>();
    layer->kind = k == 0 ? 0 : k <= sizes.layers ? 1 : 2;
    layer->path = "layers." + std::to_string(k) + ".";
    package->layers.push_back(std::move(layer));
  }
  // The token embedding, and the matrix of the head.
  if (sizes.tied)
    package->tied = std::make_unique<TiedParameter>(0, 2);
  error = checkPackage(*package);
  return error.empty() ? std::move(package) : nullptr;
}

} // namespace chimera::program
