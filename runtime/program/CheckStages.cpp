//===- CheckStages.cpp - Checks of a program's stages ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/CheckStages.h"

#include "runtime/program/Optimizer.h"
#include "runtime/program/Saturated.h"

#include <algorithm>

namespace chimera::program {

static std::string describe(const Tied *tied) {
  if (!tied)
    return "none";
  return std::to_string(tied->bytes()) + " bytes at " +
         std::to_string(tied->first_offset()) + " of the first stage and " +
         std::to_string(tied->last_offset()) + " of the last";
}

/// Returns an error text, or an empty text if each layer of the model is in one
/// stage, in order.
static std::string checkLayers(const ProgramT &program) {
  const uint32_t layers = layerCount(*program.model);
  uint32_t next = 0;
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const Stage &stage = program.stages[s];
    if (stage.first_layer() != next || stage.layers() == 0 ||
        stage.layers() > layers - next)
      return "stage " + std::to_string(s) + ": expected layers that begin at " +
             std::to_string(next) + " and end by " + std::to_string(layers) +
             ", got " + std::to_string(stage.layers()) + " from " +
             std::to_string(stage.first_layer()) + " on";
    next += stage.layers();
  }
  if (next == layers)
    return "";
  return "expected stages of the model's " + std::to_string(layers) +
         " layers, got the first " + std::to_string(next);
}

std::string checkBytes(const PackageT &model, Types types,
                       const OptimizerT &optimizer, uint32_t microBatchSize,
                       const Stage &stage) {
  const int64_t elements =
      parameterCount(model, stage.first_layer(), stage.layers());
  const int64_t parameters = parameterBytes(types, elements);
  const int64_t copy = copyBytes(types, elements);
  struct {
    const char *what;
    uint64_t got;
    int64_t expected;
  } const sizes[] = {
      {"weights", stage.weights_bytes(), saturatedSum({parameters, copy})},
      {"weights that are a copy", stage.copy_bytes(), copy},
      {"optimizer state", stage.optimizer_bytes(),
       optimizerBytes(optimizer, model, types, stage.first_layer(),
                      stage.layers())},
      {"boundary", stage.boundary_bytes(),
       boundaryBytes(model, microBatchSize,
                     stage.first_layer() + stage.layers() - 1)}};
  // The last stage sends no activation, so the size of its boundary is not
  // checked.
  const bool isLast = stage.first_layer() + stage.layers() == layerCount(model);
  for (const auto &[what, got, expected] : std::span(sizes, isLast ? 3 : 4))
    if (got != static_cast<uint64_t>(expected))
      return "expected " + std::to_string(expected) + " bytes of " + what +
             " for this model, got " + std::to_string(got);
  return "";
}

/// Returns an error text if program.tied differs from the tied parameters of
/// the model, otherwise an empty text. Requires that checkLayers accepts the
/// program.
static std::string checkTied(const ProgramT &program) {
  std::optional<Tied> ofModel = tiedParameters(*program.model, typesOf(program),
                                               program.stages.back().layers());
  std::string expected = describe(ofModel ? &*ofModel : nullptr);
  std::string got = describe(program.tied.get());
  if (got == expected)
    return "";
  return "expected " + expected + " as tied parameters for this model, got " +
         got;
}

std::string checkStages(const ProgramT &program) {
  if (std::string problem = checkPackage(*program.model); !problem.empty())
    return problem;
  if (program.micro_batch_size == 0)
    return "expected a micro-batch size of at least 1, got 0";
  for (const auto &pipeline : program.pipelines)
    if (std::string problem = checkTypesAndSizes(
            *program.model, typesOf(program), program.micro_batch_size,
            std::max(pipeline->backward_parts, 1u));
        !problem.empty())
      return problem;
  if (std::string problem = checkOptimizer(program.optimizer->name);
      !problem.empty())
    return problem;
  if (std::string problem =
          faultOfParameters(*program.optimizer, *program.model);
      !problem.empty())
    return problem;
  if (std::string problem = checkLayers(program); !problem.empty())
    return problem;
  for (size_t s = 0; s < program.stages.size(); ++s)
    if (std::string problem =
            checkBytes(*program.model, typesOf(program), *program.optimizer,
                       program.micro_batch_size, program.stages[s]);
        !problem.empty())
      return "stage " + std::to_string(s) + ": " + problem;
  return checkTied(program);
}

} // namespace chimera::program
