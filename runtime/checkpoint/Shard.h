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

#ifndef CHIMERA_RUNTIME_CHECKPOINT_SHARD_H
#define CHIMERA_RUNTIME_CHECKPOINT_SHARD_H

#include "runtime/checkpoint/Description.h"
#include "runtime/weights/WeightNames.h"

#include <vector>

namespace chimera::runtime {

/// The state of a range of layers.
struct LayersState {
  uint32_t first, layers;
  ConstBytes parameters; ///< of stageParameters(first, layers)
  ConstBytes optimizer;  ///< may be empty
};

/// A tensor of a file, and the range of its bytes in a flat state.
struct ShardTensor {
  std::string name;
  std::vector<int64_t> shape; ///< as the program has it
  bool isTransposed;          ///< in the file
  uint64_t begin, bytes;
};

/// The tensors of the parameters of layers [first, first + layers), in order.
/// If the range includes the last layer of a tied model but not the first, the
/// tied parameter is left out: another file has it.
std::vector<ShardTensor> parameterTensors(const program::ProgramT &program,
                                          uint32_t first, uint32_t layers,
                                          const WeightNames &names);

/// The tensors of the optimizer state of these layers. Empty if the optimizer
/// has no state.
std::vector<ShardTensor> optimizerTensors(const program::ProgramT &program,
                                          uint32_t first, uint32_t layers);

/// The size of the file that writeShard writes.
uint64_t shardBytes(const program::ProgramT &program,
                    const std::vector<ShardTensor> &tensors);

/// Writes the tensors, whose bytes are in `state`, to a safetensors file at
/// `path`, completely or not at all, and syncs it. Returns their checksums.
/// Throws std::runtime_error if the file cannot be written.
Checksums writeShard(const program::ProgramT &program,
                     const std::vector<ShardTensor> &tensors, ConstBytes state,
                     const std::string &path);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHECKPOINT_SHARD_H
