//===- Checks.h - Checks before kernels are called --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Argument checks that some kernels of LibTorch lack. These kernels trust the
// shapes and indices of their arguments, because autograd calls them only with
// arguments that match the forward. A package is untrusted input, so its calls
// are checked here first.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_CHECKS_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_CHECKS_H

#include "runtime/model/graph/CallContext.h"

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace chimera::runtime {

/// A function that checks the arguments of a call, which are in the order of
/// the operator's schema. May replace arguments that are indices
/// (checkedIndices). Throws std::invalid_argument if the arguments do not fit
/// together, or c10::Error if an argument has the wrong type.
using Check = void (*)(std::vector<c10::IValue> &arguments,
                       const CallContext &context);

/// The check to run before a call of `operatorName`, such as "aten::div". Null
/// if the operator's kernel checks all its arguments itself.
Check checkOf(const std::string &operatorName);

/// Throws std::invalid_argument, with `what` after "expected", unless `holds`.
void expect(bool holds, const char *what);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_CHECKS_H
