//===- InProcess.h - Control between threads --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_INPROCESS_H
#define CHIMERA_RUNTIME_CONTROL_INPROCESS_H

#include "runtime/control/Control.h"

#include <memory>
#include <vector>

namespace chimera::runtime {

/// The controls of `ranks` threads of this process, in rank order. Each is used
/// by one thread. They may be destroyed in any order.
std::vector<std::unique_ptr<Control>> makeInProcessControls(uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_INPROCESS_H
