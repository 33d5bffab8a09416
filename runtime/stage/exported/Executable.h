//===- Executable.h - A graph that can be executed --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph of a package whose operators have been looked up in LibTorch. It
// calls the kernels that PyTorch's autograd would call, in the same order, so
// the results have the same bits. A *subgraph* is the set of
// calls that some of the graph's results need.
//
// Three operations do not use LibTorch's operators:
// - native_dropout drops the elements that the runtime's own counter-based
//   generator chooses (../torch/Dropout.h).
// - Products of float32 matrices use ../torch/Products.h.
// - A weight gradient is added to its sum as soon as it is computed, or by the
//   product that computes it.
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

/// The subgraph that some results of a graph need.
struct Subgraph {
  std::vector<uint32_t> calls; ///< ascending
  /// For each element of `calls`: the values that have no use after that call.
  std::vector<std::vector<uint32_t>> dead;
  /// Whether weight gradients are added to their sums.
  bool adds = false;
  /// Weight gradients that exist before the first call and are added then.
  std::vector<uint32_t> addedFirst;
};

class Executable {
public:
  /// Requires a graph that checkPackage accepts. The graph must outlive this
  /// object. Throws std::invalid_argument if Operators.h rejects one of its
  /// calls.
  Executable(const program::GraphT &graph, at::Device device);

  /// The subgraph that computes the values `wanted` from the values `given`. If
  /// `adds` is true, it also computes all weight gradients. Throws
  /// std::invalid_argument if a value that it needs is missing.
  Subgraph select(const std::vector<uint32_t> &given,
                  const std::vector<uint32_t> &wanted, bool adds) const;

  /// The values of one execution, indexed by their numbers.
  using Values = std::vector<at::Tensor>;
  Values makeValues() const { return Values(graph.values); }

  /// The inputs of an execution besides the graph's values.
  struct Context {
    uint64_t seed = 0;
    uint32_t layer = 0;
    /// The micro-batch whose dropout mask is applied. Without it, nothing is
    /// dropped.
    std::optional<MicroBatch> dropped;
    StageKernels *kernels = nullptr; ///< set on a GPU
    /// The sums of weight gradients, by parameter number.
    std::vector<GradientSum *> sums;
  };

  /// Computes the subgraph's values. `values` holds the given values. Values
  /// are freed after their last use unless they are wanted; this includes the
  /// given values.
  void run(const Subgraph &subgraph, Values &values,
           const Context &context) const;

  /// Adds the value to the gradient sum of each parameter whose gradient it is.
  void addSums(uint32_t value, const Values &values,
               const Context &context) const;

private:
  using Argument = OperatorArgument;
  enum class Implementation { Operator, Product, ProductWithBias, Dropout };
  struct Operation {
    explicit Operation(c10::OperatorHandle handle) : handle(handle) {}

    c10::OperatorHandle handle;
    Implementation implementation = Implementation::Operator;
    Check check = nullptr;
    /// For dropout: the number of earlier dropout calls in the graph.
    uint32_t site = 0;
    std::vector<Argument> arguments;
  };
  /// The parameter whose gradient a product computes. If isTransposed, the
  /// product computes the transpose of the gradient.
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
  std::vector<int32_t> maker; ///< the call that computes a value, or -1
  std::vector<uint32_t> uses; ///< of a value, including as output
  /// The parameters whose gradient a value is.
  std::vector<std::vector<uint32_t>> gradientOf;
  std::vector<std::optional<FusedSum>> fused; ///< by call
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_EXECUTABLE_H
