//===- Operators.h - Operators that packages may call -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checks of a package's calls, against the list of allowed operators
// (operators.txt) and against LibTorch's schema of the operator.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_OPERATORS_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_OPERATORS_H

#include "runtime/program/Package.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace chimera::runtime {

at::ScalarType torchTypeOf(program::TensorType type);

/// An argument of a call: a constant, or the numbers of some values of the
/// graph.
struct OperatorArgument {
  enum class Kind { Constant, Value, Values, OptionalValues };
  Kind kind = Kind::Constant;
  c10::IValue constant;
  std::vector<int32_t> values;
};

/// The operator's name with its overload, for messages.
std::string nameOf(const program::CallT &call);

/// Looks up the operator of the call. Throws std::invalid_argument if it is not
/// in the list, if this LibTorch does not have it, if it modifies an argument,
/// or if the number of arguments or results is wrong.
c10::OperatorHandle findOperator(const program::CallT &call);

/// The call's arguments for `samples` samples, in the order of `schema`, which
/// must be the schema of the call's operator. A device argument becomes
/// `device`. Throws std::invalid_argument if an argument has the wrong type.
std::vector<OperatorArgument> argumentsOf(const program::CallT &call,
                                          const c10::FunctionSchema &schema,
                                          uint32_t samples, at::Device device);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_OPERATORS_H
