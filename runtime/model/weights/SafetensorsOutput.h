//===- SafetensorsOutput.h - Writing safetensors files ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_SAFETENSORSOUTPUT_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_SAFETENSORSOUTPUT_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Output.h"
#include "runtime/program/package_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A tensor of a file, and the range of its bytes in a flat state.
struct OutputTensor {
  std::string name;
  program::DataType type;
  std::vector<int64_t> shape; ///< in the state
  bool isTransposed;          ///< whether the file has rows as columns
  uint64_t begin, bytes;
};

/// The size of the file that writeSafetensors writes.
uint64_t safetensorsBytes(const std::vector<OutputTensor> &tensors);

/// Writes the tensors, whose bytes are in `state`, to a safetensors file at
/// `path`, in this order, completely or not at all (writeAtomically). Equal
/// tensors give equal files. Returns false, with the reason in `error`, if the
/// file cannot be written. runtime/data/Safetensors.h describes the format.
bool writeSafetensors(const std::vector<OutputTensor> &tensors,
                      ConstBytes state, const std::string &path,
                      std::string &error,
                      program::IfExists ifExists = program::IfExists::Replace);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_SAFETENSORSOUTPUT_H
