//===- InitialValues.h - What parameters are before step 0 ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_INITIALVALUES_H
#define CHIMERA_RUNTIME_STAGE_TORCH_INITIALVALUES_H

#include "runtime/device/Bytes.h"
#include "runtime/program/package_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace chimera::runtime {

/// The values that parameters begin with, by their names. Calls may come from
/// any thread.
class InitialValues {
public:
  virtual ~InitialValues() = default;
  /// Fills `memory`, of the host, with the elements of parameter `name`, of
  /// that type and shape. Throws std::runtime_error where there is none of the
  /// name, it has another type or shape, or it cannot be read.
  virtual void read(const std::string &name, program::DataType type,
                    const std::vector<int64_t> &shape, Bytes memory) const = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_INITIALVALUES_H
