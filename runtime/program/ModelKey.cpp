//===- ModelKey.cpp - Recognises a model ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ModelKey.h"

#include "runtime/program/Layers.h"
#include "runtime/program/Printable.h"

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

/// "layer 2 ('blocks.1')". The name is left out if the layer has none.
static std::string nameOfLayer(const PackageT &model, size_t layer) {
  std::string path = model.layers[layer]->path;
  if (path.ends_with('.'))
    path.pop_back();
  return "layer " + std::to_string(layer) +
         (path.empty() ? "" : " ('" + printable(path) + "')");
}

std::string differenceOfModels(const std::string &key, const PackageT &model) {
  const auto expected = nlohmann::json::parse(modelKey(model));
  const auto got = nlohmann::json::parse(key, nullptr, /*exceptions=*/false);
  if (got == expected)
    return {};
  auto differs = [&](const char *name) {
    return got.is_object() && got.contains(name) && got[name] != expected[name];
  };
  auto message = [](const std::string &what, const nlohmann::json &wanted,
                    const nlohmann::json &found) {
    return "expected " + wanted.dump() + " " + what + ", got " + found.dump();
  };
  if (differs("layers"))
    return message("layers (with embedding and head)", expected["layers"],
                   got["layers"]);
  if (differs("parameters") && got["parameters"].is_array() &&
      got["parameters"].size() == expected["parameters"].size())
    for (size_t layer = 0;; ++layer)
      if (const auto &wanted = expected["parameters"][layer],
          &found = got["parameters"][layer];
          wanted != found)
        return message("parameters in " + nameOfLayer(model, layer), wanted,
                       found);
  if (differs("sample_bytes"))
    return message("bytes of inputs in a sample", expected["sample_bytes"],
                   got["sample_bytes"]);
  return "expected the model " + expected.dump() + ", got " + printable(key);
}

} // namespace chimera::program
