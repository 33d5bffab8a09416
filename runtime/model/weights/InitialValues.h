//===- InitialValues.h - Parameters before step 0 ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_INITIALVALUES_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_INITIALVALUES_H

#include "runtime/device/Bytes.h"
#include "runtime/program/package_generated.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::runtime {

/// The initial values of parameters, by name, and those of their optimizer
/// state. Any thread may call this.
class InitialValues {
public:
  virtual ~InitialValues() = default;
  /// Fills `memory` on the host with the elements of parameter `name`, which
  /// has this type and shape. Throws std::runtime_error if there is no
  /// parameter of that name, if its type or shape differs, or if it cannot be
  /// read.
  virtual void read(const std::string &name, program::DataType type,
                    const std::vector<int64_t> &shape, Bytes memory) const = 0;

  /// Like `read`, but for a part of the optimizer state of parameter `name`,
  /// such as "exp_avg" (optimizerStates in Layers.h). Returns false, and leaves
  /// `memory` as it is, if the optimizer state begins with zeros.
  virtual bool readState(const std::string &name, std::string_view state,
                         program::DataType type,
                         const std::vector<int64_t> &shape,
                         Bytes memory) const {
    (void)name, (void)state, (void)type, (void)shape, (void)memory;
    return false;
  }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_INITIALVALUES_H
