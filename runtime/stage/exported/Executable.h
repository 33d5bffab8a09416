//===- Executable.h - A graph that can be run -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph of a package with its operators found in LibTorch, which calls the
// kernels that PyTorch's own autograd would, in its order, and so gives the
// same bits. Some of a graph's results can be made alone: a *selection* is the
// calls that these need.
//
// Three things are done otherwise than by LibTorch's operators. native_dropout
// drops the elements that the runtime's own counter says (../torch/Dropout.h).
// Products of float32 matrices are ../torch/Products.h's. And a gradient of a
// weight is added to its sum as soon as it is made, or by the product that
// makes it.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXPORTED_EXECUTABLE_H
#define CHIMERA_RUNTIME_STAGE_EXPORTED_EXECUTABLE_H

#include "runtime/program/Package.h"
#include "runtime/stage/exported/Checks.h"
#include "runtime/stage/exported/Operators.h"
#include "runtime/stage/torch/Dropout.h"
#include "runtime/stage/torch/GradientSum.h"

#include <optional>
#include <vector>

namespace chimera::runtime {

/// The calls that some results of a graph need.
struct Selection {
  std::vector<uint32_t> calls; ///< ascending
  /// The values that nobody uses behind a call, for each of `calls`.
  std::vector<std::vector<uint32_t>> dead;
  /// Whether weight gradients are added to their sums.
  bool adds = false;
  /// Weight gradients that are there before the first call.
  std::vector<uint32_t> addedFirst;
};

class Executable {
public:
  /// `graph` must be one that checkPackage accepts, and outlive this. Throws
  /// std::invalid_argument where Operators.h refuses one of its calls.
  Executable(const program::GraphT &graph, at::Device device);

  /// What makes the values `wanted` and, where it `adds`, all weight gradients,
  /// from the values of `given`. Throws std::invalid_argument where one is
  /// missing.
  Selection select(const std::vector<uint32_t> &given,
                   const std::vector<uint32_t> &wanted, bool adds) const;

  /// The values of a run, by their numbers.
  using Values = std::vector<at::Tensor>;
  Values makeValues() const { return Values(graph.values); }

  /// What a run needs beside values.
  struct Context {
    uint64_t seed = 0;
    uint32_t layer = 0;
    /// For whose samples elements are dropped; without one none are.
    std::optional<MicroBatch> dropped;
    StageKernels *kernels = nullptr; ///< a GPU's
    /// Where weight gradients are added, by the parameters' numbers.
    std::vector<GradientSum *> sums;
  };

  /// Makes the selection's values in `values`, which has those that were given.
  /// Frees what is not wanted and nobody uses any more, of the given ones too.
  void run(const Selection &selection, Values &values,
           const Context &context) const;

  /// Adds the value to the sums of the parameters whose gradient it is, if any.
  void addSums(uint32_t value, const Values &values,
               const Context &context) const;

private:
  using Argument = OperatorArgument;
  enum class Way { Operator, Product, ProductWithBias, Dropout };
  struct Operation {
    explicit Operation(c10::OperatorHandle handle) : handle(handle) {}

    c10::OperatorHandle handle;
    Way way = Way::Operator;
    Check check = nullptr;
    uint32_t site = 0; ///< of dropout: how many are before it
    std::vector<Argument> arguments;
  };
  /// A weight gradient that a product makes: its sum, or the transpose of it.
  struct FusedSum {
    uint32_t parameter;
    bool isTransposed;
  };

  Operation find(const program::CallT &call, uint32_t &sites) const;
  void findSums();
  bool isTranspose(uint32_t call) const;
  at::Tensor tensorOf(const Argument &argument, const Values &values) const;
  void execute(uint32_t call, bool adds, Values &values, const Context &context,
               std::vector<c10::IValue> &stack) const;
  void callOperator(uint32_t call, Values &values,
                    std::vector<c10::IValue> &stack) const;

  const program::GraphT &graph;
  at::Device device;
  std::vector<Operation> operations;
  std::vector<int32_t> maker; ///< the call that makes a value, or -1
  std::vector<uint32_t> uses; ///< of a value, as output too
  /// The parameters whose gradient a value is.
  std::vector<std::vector<uint32_t>> gradientOf;
  std::vector<std::optional<FusedSum>> fused; ///< by call
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_EXECUTABLE_H
