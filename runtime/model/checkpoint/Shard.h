//===- Shard.h - The tensors of some layers in files ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of a checkpoint that one rank writes for one range of layers: a
// safetensors file of parameters, and one of optimizer state. Parameters have
// the names of WeightNames.h. The optimizer state of parameter NAME has the
// names NAME.exp_avg and NAME.exp_avg_sq, with NAME from Layers.h.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CHECKPOINT_SHARD_H
#define CHIMERA_RUNTIME_MODEL_CHECKPOINT_SHARD_H

#include "runtime/model/checkpoint/Description.h"
#include "runtime/model/weights/SafetensorsOutput.h"
#include "runtime/model/weights/WeightNames.h"

#include <vector>

namespace chimera::runtime {

/// The tensors of the parameters of layers [first, first + layers), in order.
/// If the range includes the last layer of a tied model but not the first, the
/// tied parameter is left out: another file has it.
std::vector<OutputTensor> parameterTensors(const program::ProgramT &program,
                                           uint32_t first, uint32_t layers,
                                           const WeightNames &names);

/// The tensors of the optimizer state of these layers. Empty if the optimizer
/// has no state.
std::vector<OutputTensor> optimizerTensors(const program::ProgramT &program,
                                           uint32_t first, uint32_t layers);

/// Writes the tensors, whose bytes are in `state`, to a safetensors file at
/// `path` (writeSafetensors). Returns their checksums. Throws
/// std::runtime_error if the file cannot be written.
Checksums writeShard(const std::vector<OutputTensor> &tensors, ConstBytes state,
                     const std::string &path);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CHECKPOINT_SHARD_H
