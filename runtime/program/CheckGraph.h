//===- CheckGraph.h - Checks of a package's graphs --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_CHECKGRAPH_H
#define CHIMERA_RUNTIME_PROGRAM_CHECKGRAPH_H

#include "runtime/program/Package.h"

#include <functional>
#include <span>

namespace chimera::program {

/// The maximum number of values in a graph, and of tensors of one kind (for
/// example parameters or inputs) in a layer.
inline constexpr uint32_t kMaxValues = 1 << 20;

/// The first error that was found in a package. Later errors are ignored.
struct FirstError {
  std::string where; ///< the beginning of a message, for example "layer 3: "
  std::string text;  ///< empty if there is no error

  explicit operator bool() const { return !text.empty(); }
  void fail(const std::string &message) {
    if (text.empty())
      text = where + message;
  }
};

void checkPrintable(FirstError &error, const char *what,
                    const std::string &text);
void checkTensorType(FirstError &error, TensorType type);

/// Checks that `perSample` is empty or has as many numbers as `constants`, and
/// that valuesFor(constants, perSample, n) overflows for no number of samples n
/// from 1 to kMaxSamples. Returns whether this is true.
bool checkPerSample(FirstError &error, const std::vector<int64_t> &constants,
                    const std::vector<int64_t> &perSample);

/// Checks a graph. Reports an error
/// - if an input has a role that is not in `takes`, or an output has a role
///   that is not in `makes`;
/// - if two inputs or two outputs have the same role and index, or if an index
///   is not below count(role);
/// - if a value is used before it is defined, or defined twice;
/// - if an argument of a call does not have exactly the fields that its kind
///   needs.
void checkGraph(FirstError &error, const GraphT &graph,
                std::span<const Role> takes, std::span<const Role> makes,
                const std::function<size_t(Role)> &count);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_CHECKGRAPH_H
