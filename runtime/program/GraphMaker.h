//===- GraphMaker.h - Makes graphs of a package -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a graph of a package (package.fbs) call by call.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_GRAPHMAKER_H
#define CHIMERA_RUNTIME_PROGRAM_GRAPHMAKER_H

#include "runtime/program/package_generated.h"

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::program {

/// The extent constant + perSample * samples.
struct Extent {
  int64_t constant = 0;
  int64_t perSample = 0;
};
using Extents = std::vector<Extent>;

std::unique_ptr<TensorShapeT> makeTensorShape(TensorType type,
                                              const Extents &extents);

class GraphMaker {
public:
  /// A value of the graph.
  struct Value {
    uint32_t number;
  };

  /// An argument of a call. A std::nullopt is the argument None.
  class Operand {
  public:
    Operand(std::nullopt_t) {}
    Operand(Value value);
    Operand(bool boolean);
    Operand(std::signed_integral auto integer)
        : Operand(ofInteger(int64_t{integer})) {}
    Operand(const Extents &integers);
    Operand(double number);
    Operand(TensorType type);
    Operand(const char *text);
    static Operand values(const std::vector<Value> &list);
    static Operand booleans(const std::vector<bool> &list);

    const ArgumentT &argument() const { return made; }

  private:
    static Operand ofInteger(int64_t integer);

    ArgumentT made;
  };

  /// The input of the graph that has this role and index. Repeated calls return
  /// the same value.
  Value input(Role role, uint32_t index);

  /// Adds a call of the operator `name` to the graph, such as "aten::view" or
  /// "aten::add.Tensor" (operator and overload). Returns its only result.
  Value call(std::string_view name, const std::vector<Operand> &operands);

  /// Adds a call of the operator `name`. Returns the first `count` results of
  /// the call.
  template <size_t count>
  std::array<Value, count> calls(std::string_view name,
                                 const std::vector<Operand> &operands) {
    std::array<Value, count> results;
    for (Value &result : results)
      result = makeValue();
    add(name, operands, results.data(), count);
    return results;
  }

  void output(Role role, uint32_t index, Value value);

  std::unique_ptr<GraphT> finish();

private:
  Value makeValue() { return {graph.values++}; }
  void add(std::string_view name, const std::vector<Operand> &operands,
           const Value *results, size_t count);

  GraphT graph;
};

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_GRAPHMAKER_H
