//===- ModelKey.cpp - Recognises a model ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ModelKey.h"

#include "runtime/program/Layers.h"

#include <nlohmann/json.hpp>

namespace chimera::program {

std::string modelKey(const PackageT &model) {
  const uint32_t layers = layerCount(model);
  nlohmann::ordered_json key = {{"layers", layers}};
  for (uint32_t layer = 0; layer < layers; ++layer)
    key["parameters"].push_back(parameterCount(model, layer, 1));
  key["sample_bytes"] = inputBytes(model, 1);
  return key.dump();
}

} // namespace chimera::program
