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

/// Makes the controls of `ranks` ranks, in rank order. The ranks are threads of
/// this process; each thread uses its own control. The controls may be
/// destroyed in any order.
std::vector<std::unique_ptr<Control>> makeInProcessControls(uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_INPROCESS_H
