//===- Shard.cpp - The tensors of some layers in files --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/Shard.h"

#include "runtime/program/Optimizer.h"

#include <algorithm>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// A parameter of some layers that a checkpoint has under its own name.
struct OwnParameter {
  std::string name;
  program::Parameter parameter;
  size_t number;  ///< among the parameters of the layers (stageParameters)
  int64_t offset; ///< in the flat parameters, in elements
};

std::vector<OwnParameter> ownParameters(const program::ProgramT &program,
                                        uint32_t first, uint32_t layers) {
  const program::PackageT &model = *program.model;
  std::vector<OwnParameter> own;
  int64_t offset = 0;
  size_t number = 0;
  for (const program::StageParameter &held :
       program::stageParameters(model, first, layers)) {
    const program::ParameterId from =
        program::initialValueSource(model, held.layer, held.number);
    if (from.layer == held.layer && from.number == held.number)
      own.push_back({program::parameterName(model, held.layer, held.number),
                     held.parameter, number, offset});
    offset += held.parameter.elements();
    ++number;
  }
  return own;
}

} // namespace

std::vector<OutputTensor>
chimera::runtime::parameterTensors(const program::ProgramT &program,
                                   uint32_t first, uint32_t layers,
                                   const WeightNames &names) {
  const int64_t elementBytes = program::bytesOf(program.weight_type);
  std::vector<OutputTensor> tensors;
  for (OwnParameter &own : ownParameters(program, first, layers)) {
    const NamedTensor named = names.tensorOf(own.name);
    const auto bytes =
        static_cast<uint64_t>(own.parameter.elements() * elementBytes);
    tensors.push_back({named.name, program.weight_type,
                       std::move(own.parameter.shape), named.isTransposed,
                       static_cast<uint64_t>(own.offset * elementBytes),
                       bytes});
  }
  return tensors;
}

std::vector<OutputTensor>
chimera::runtime::optimizerTensors(const program::ProgramT &program,
                                   uint32_t first, uint32_t layers) {
  const int64_t elementBytes = program::bytesOf(program.weight_type);
  const program::StateLayout layout =
      program::stateLayout(*program.optimizer, *program.model, first, layers);
  std::vector<OutputTensor> tensors;
  for (const OwnParameter &own : ownParameters(program, first, layers)) {
    const auto &[rule, offsets] = layout.parameters[own.number];
    for (size_t i = 0; i < offsets.size(); ++i)
      tensors.push_back(
          {own.name + "." + std::string(program::statesOf(rule)[i]),
           program.weight_type, own.parameter.shape, false,
           static_cast<uint64_t>(offsets[i] * elementBytes),
           static_cast<uint64_t>(own.parameter.elements() * elementBytes)});
  }
  std::ranges::sort(tensors, {}, &OutputTensor::begin);
  return tensors;
}

Checksums chimera::runtime::writeShard(const std::vector<OutputTensor> &tensors,
                                       ConstBytes state,
                                       const std::string &path) {
  std::string error;
  if (!writeSafetensors(tensors, state, path, error))
    throw std::runtime_error(error);
  Checksums checksums;
  for (const OutputTensor &tensor : tensors)
    checksums[tensor.name] =
        checksumOf(state.subspan(tensor.begin, tensor.bytes));
  return checksums;
}
