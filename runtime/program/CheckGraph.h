//===- CheckGraph.h - What is wrong with a package's graph ------*- C++ -*-===//
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

/// Of a graph, or tensors of one kind in a layer.
inline constexpr uint32_t kMostValues = 1 << 20;

/// What is wrong first with a package; everything after it is skipped.
struct FirstError {
  std::string where; ///< begins a message: "layer 3: "
  std::string text;  ///< empty where nothing is wrong

  explicit operator bool() const { return !text.empty(); }
  void fail(const std::string &message) {
    if (text.empty())
      text = where + message;
  }
};

void checkText(FirstError &error, const char *what, const std::string &text);
void checkType(FirstError &error, TensorType type);

/// Fails unless the graph takes and makes only tensors of these roles, each
/// once and with a number below the `count` of its role, makes each value
/// before it is used, and gives each argument of a call what its kind has.
void checkGraph(FirstError &error, const GraphT &graph,
                std::span<const Role> takes, std::span<const Role> makes,
                const std::function<size_t(Role)> &count);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_CHECKGRAPH_H
