//===- Shard.cpp - The tensors of some layers in files --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Shard.h"

#include "runtime/program/Layers.h"

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The parameters of some layers that a checkpoint has under their own names,
/// each with its offset in the flat parameters, in elements.
struct OwnParameter {
  std::string name;
  program::Parameter parameter;
  int64_t offset;
};

std::vector<OwnParameter> ownParameters(const program::ProgramT &program,
                                        uint32_t first, uint32_t layers) {
  const program::ModelT &model = *program.model;
  std::vector<OwnParameter> own;
  int64_t offset = 0;
  for (const program::StageParameter &held :
       program::stageParameters(model, first, layers)) {
    const program::ParameterNumber from =
        program::initialValueSource(model, held.layer, held.number);
    if (from.layer == held.layer && from.number == held.number)
      own.push_back({program::parameterName(model, held.layer, held.number),
                     held.parameter, offset});
    offset += held.parameter.elements();
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
  const int64_t all = program::parameterCount(*program.model, first, layers);
  std::vector<OutputTensor> tensors;
  const std::vector<OwnParameter> parameters =
      ownParameters(program, first, layers);
  int64_t begin = 0; // of a state's vector, in elements
  for (std::string_view state :
       program::optimizerStates(program.optimizer->name)) {
    for (const OwnParameter &own : parameters)
      tensors.push_back(
          {own.name + "." + std::string(state), program.weight_type,
           own.parameter.shape, false,
           static_cast<uint64_t>((begin + own.offset) * elementBytes),
           static_cast<uint64_t>(own.parameter.elements() * elementBytes)});
    begin += all;
  }
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
