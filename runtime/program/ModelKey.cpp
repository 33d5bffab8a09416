//===- ModelKey.cpp - The properties that fix a model's times -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ModelKey.h"

#include "runtime/program/Layers.h"

#include <nlohmann/json.hpp>

namespace chimera::program {

std::string modelKey(const ModelT &model) {
  nlohmann::ordered_json sizes = {{"architecture", model.architecture}};
  if (model.architecture == kExported) {
    const uint32_t layers = layerCount(model);
    sizes["layers"] = layers;
    for (uint32_t layer = 0; layer < layers; ++layer)
      sizes["parameters"].push_back(parameterCount(model, layer, 1));
    sizes["sample_bytes"] = inputBytes(model, 1);
    return sizes.dump();
  }
  sizes["layers"] = model.layers;
  sizes["heads"] = model.heads;
  sizes["width"] = model.width;
  sizes["context"] = model.context;
  sizes["vocabulary"] = model.vocabulary;
  sizes["dropout"] = model.dropout;
  sizes["tied"] = model.tied;
  return sizes.dump();
}

} // namespace chimera::program
