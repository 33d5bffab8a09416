//===- Operators.h - What graphs of packages may call -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call of a package, held against the list of operators (operators.txt) and
// against the schema that LibTorch has of the operator.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXPORTED_OPERATORS_H
#define CHIMERA_RUNTIME_STAGE_EXPORTED_OPERATORS_H

#include "runtime/program/Package.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace chimera::runtime {

at::ScalarType torchTypeOf(program::TensorType type);

/// What an operator is called with: a constant, or numbers of a graph's values.
struct OperatorArgument {
  enum class Kind { Constant, Value, Values, OptionalValues };
  Kind kind = Kind::Constant;
  c10::IValue constant;
  std::vector<int32_t> values;
};

/// The operator's name with its overload, for people.
std::string nameOf(const program::CallT &call);

/// The operator that is called. Throws std::invalid_argument where it is not in
/// the list, this LibTorch does not have it, it changes an argument, or it has
/// other numbers of arguments or results.
c10::OperatorHandle findOperator(const program::CallT &call);

/// The call's arguments, in the operator's order; where it asks for a device,
/// `device`. Throws std::invalid_argument where one is of another type than the
/// operator's schema says. Requires the operator of the call.
std::vector<OperatorArgument> argumentsOf(const program::CallT &call,
                                          const c10::FunctionSchema &schema,
                                          at::Device device);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_OPERATORS_H
