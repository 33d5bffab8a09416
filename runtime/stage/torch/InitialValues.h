//===- InitialValues.h - Parameters before step 0 ---------------*- C++ -*-===//
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

/// The initial values of parameters, by name. Any thread may call this.
class InitialValues {
public:
  virtual ~InitialValues() = default;
  /// Fills `memory` on the host with the elements of parameter `name`, which
  /// has this type and shape. Throws std::runtime_error if there is no
  /// parameter of that name, if its type or shape differs, or if it cannot be
  /// read.
  virtual void read(const std::string &name, program::DataType type,
                    const std::vector<int64_t> &shape, Bytes memory) const = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_INITIALVALUES_H
