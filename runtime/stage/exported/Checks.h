//===- Checks.h - What kernels take for granted -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some of LibTorch's kernels do not look at all shapes and indices that they
// are given: autograd calls them with those of the forward. A package is input
// from elsewhere, so these are held against each other here, before the call.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXPORTED_CHECKS_H
#define CHIMERA_RUNTIME_STAGE_EXPORTED_CHECKS_H

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace chimera::runtime {

/// Looks at the arguments of a call, in the order of the operator's schema.
/// Throws std::invalid_argument, or c10::Error where one has another type.
using Check = void (*)(const std::vector<c10::IValue> &arguments);

/// What is to be held before the operator is called, like "aten::div", or null
/// where its kernel looks at everything and says what is wrong.
Check checkOf(const std::string &operatorName);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_CHECKS_H
