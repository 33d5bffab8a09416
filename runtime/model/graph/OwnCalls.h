//===- OwnCalls.h - Calls that the runtime computes itself ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The calls of a graph that LibTorch's operators do not compute:
//
// - chimera::dropout and chimera::dropout_backward drop the elements that the
//   runtime's own counter-based generator chooses (../tensors/Dropout.h). The
//   backward draws the same numbers again, so no mask is stored.
// - chimera::attention and chimera::attention_backward (Attention.h).
// - chimera::linear_cross_entropy and chimera::linear_cross_entropy_backward
//   (LinearCrossEntropy.h).
//
// The calls of a forward that drop elements are numbered, in the order of the
// graph. These numbers are their sites (Random.h). A call states its site, and
// its backward states the same.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_OWNCALLS_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_OWNCALLS_H

#include "runtime/model/graph/CallContext.h"
#include "runtime/model/graph/Operators.h"
#include "runtime/model/tensors/Dropout.h"
#include "runtime/model/tensors/GradientSum.h"

#include <memory>
#include <optional>
#include <vector>

namespace chimera::runtime {

/// The results that a call has to make.
struct WantedResults {
  uint32_t mask = UINT32_MAX; ///< bit i: whether result i is wanted
  /// If there is one, the result OwnCall::summedResult() is added to it, and is
  /// not made.
  GradientSum *sum = nullptr;

  bool has(size_t result) const { return mask >> result & 1; }
};

class OwnCall {
public:
  virtual ~OwnCall() = default;
  /// Replaces the arguments on the stack by the results. A result that is not
  /// wanted may be an undefined tensor.
  virtual void run(std::vector<c10::IValue> &stack, const CallContext &context,
                   const WantedResults &wanted) const = 0;
  /// The result that the call can add directly to a gradient sum, if any.
  virtual std::optional<size_t> summedResult() const { return std::nullopt; }
};

/// The implementation of `call`, or null if it is an operator of LibTorch.
/// `arguments` are argumentsOf(call). `sites` is the number of earlier calls of
/// the graph that drop elements; it grows by 1 if this one does. Throws
/// std::invalid_argument if a constant argument is not allowed.
std::unique_ptr<OwnCall>
makeOwnCall(const program::CallT &call,
            const std::vector<OperatorArgument> &arguments, uint32_t &sites);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_OWNCALLS_H
