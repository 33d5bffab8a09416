//===- Executable.h - A graph that can be executed --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph of a package for one number of samples, with its operators looked up
// in LibTorch. An Executable calls the kernels that PyTorch's autograd would
// call, in the same order, so the results have the same bits. A *subgraph* is
// the set of calls that some of the graph's results need.
//
// Some operations differ from LibTorch's operators:
// - Dropout, attention and the cross-entropy of many classes are the runtime's
//   own calls (OwnCalls.h).
// - Products of float32 matrices use ../tensors/Products.h.
// - A weight gradient is added to its sum as soon as it is computed. If a
//   matrix product computes the gradient, the product adds it directly to the
//   sum. So does an own call (OwnCall::summedResult).
// - A sum of two tensors is computed in the memory of one of them if nothing
//   else uses it.
// - Kernels for gradients of embeddings and of indexing may add bfloat16
//   numbers in bfloat16. A sum of more than 256 equal numbers would stay as it
//   is. So if their result is a weight gradient, they add in float32.
// - A view that is impossible is a copy. Kernels of another device may give
//   other strides than those with which the package was traced.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_EXECUTABLE_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_EXECUTABLE_H

#include "runtime/model/graph/Checks.h"
#include "runtime/model/graph/Operators.h"
#include "runtime/model/graph/OwnCalls.h"
#include "runtime/model/tensors/GradientSum.h"
#include "runtime/program/Package.h"

#include <optional>
#include <vector>

namespace chimera::runtime {

/// The calls that some results of a graph need.
struct Subgraph {
  std::vector<uint32_t> calls; ///< numbers of calls, ascending
  /// For each element of `calls`: its results that are wanted, as
  /// WantedResults::mask.
  std::vector<uint32_t> wanted;
  /// For each element of `calls`: the values that have no use after that call.
  std::vector<std::vector<uint32_t>> freedAfter;
  /// Whether an execution adds weight gradients to their sums.
  bool adds = false;
  /// Weight gradients that no call of the subgraph computes, since their values
  /// are given. They are added to their sums before the first call.
  std::vector<uint32_t> addedFirst;
};

class Executable {
public:
  /// Requires a graph that checkPackage accepts. The graph must outlive this
  /// object. Throws std::invalid_argument if the functions of Operators.h or
  /// OwnCalls.h reject a call, or if the backward of an embedding has an
  /// argument that is not supported.
  Executable(const program::GraphT &graph, uint32_t samples, at::Device device);

  /// The subgraph that computes the values `wanted` from the values `given`. If
  /// `adds` is true, the subgraph also computes all weight gradients and adds
  /// them to their sums. Throws std::invalid_argument if the subgraph needs a
  /// value that is not given and that no call computes.
  Subgraph selectSubgraph(const std::vector<uint32_t> &given,
                          const std::vector<uint32_t> &wanted, bool adds) const;

  /// The tensors of one execution, indexed by value number.
  using Values = std::vector<at::Tensor>;
  Values makeValues() const { return Values(graph.values); }

  /// The inputs of an execution in addition to the graph's values.
  struct Context {
    CallContext calls;
    /// The gradient sum of each parameter, by parameter number.
    std::vector<GradientSum *> sums;
  };

  /// Executes the subgraph. At the start, `values` has the given values; at the
  /// end, the wanted values. All other values, also given ones, are freed after
  /// their last use.
  void run(const Subgraph &subgraph, Values &values,
           const Context &context) const;

  /// If the value is the gradient of parameters, adds it to their gradient
  /// sums.
  void addToGradientSums(uint32_t value, const Values &values,
                         const Context &context) const;

private:
  using Argument = OperatorArgument;
  enum class Implementation { Call, Product, ProductWithBias, Sum, View };
  struct Operation {
    explicit Operation(c10::OperatorHandle handle) : handle(handle) {}

    c10::OperatorHandle handle;
    Implementation implementation = Implementation::Call;
    std::unique_ptr<OwnCall> own; ///< null if LibTorch's operator computes it
    Check check = nullptr;
    std::vector<Argument> arguments;
    /// The arguments to convert from bfloat16 to float32.
    std::vector<size_t> addends;
  };
  /// A product or an own call that adds its result directly to the gradient sum
  /// of `parameter`. If isTransposed is true, a product computes the transpose
  /// of the gradient.
  struct FusedSum {
    uint32_t parameter;
    bool isTransposed;
  };

  Operation find(const program::CallT &call, uint32_t &sites) const;
  void findSums();
  void findAddends();
  bool isTranspose(uint32_t call) const;
  at::Tensor tensorOf(const Argument &argument, const Values &values) const;
  /// Computes call `i` of the subgraph, which is a sum, in the memory of an
  /// operand. Returns false if neither operand's memory can take the sum.
  bool sumInPlace(const Subgraph &subgraph, size_t i, Values &values) const;
  /// Executes call `i` of the subgraph.
  void execute(const Subgraph &subgraph, size_t i, Values &values,
               const Context &context, std::vector<c10::IValue> &stack) const;
  void runCall(uint32_t call, const WantedResults &wanted, Values &values,
               const CallContext &context,
               std::vector<c10::IValue> &stack) const;

  const program::GraphT &graph;
  uint32_t samples;
  at::Device device;
  std::vector<Operation> operations;
  std::vector<int32_t> maker; ///< by value: the call that computes it, or -1
  std::vector<uint32_t> uses; ///< by value: number of its uses
  /// By value: the parameters that have this value as their gradient.
  std::vector<std::vector<uint32_t>> gradientOf;
  std::vector<std::optional<FusedSum>> fused; ///< by call
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_EXECUTABLE_H
