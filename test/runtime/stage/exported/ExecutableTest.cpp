//===- ExecutableTest.cpp - Executable graphs -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/exported/Executable.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace chimera::runtime {
namespace {

using program::ArgumentKind;
using program::ArgumentT;
using program::Port;
using program::Role;

// A test that makes a graph call by call.
class ExecutableTest : public testing::Test {
protected:
  using Arguments = std::vector<ArgumentT>;

  static ArgumentT value(int32_t number) {
    ArgumentT made;
    made.kind = ArgumentKind::Value;
    made.values = {number};
    return made;
  }
  static ArgumentT values(std::vector<int32_t> numbers) {
    ArgumentT made;
    made.kind = ArgumentKind::Values;
    made.values = std::move(numbers);
    return made;
  }
  static ArgumentT integer(int64_t number) {
    ArgumentT made;
    made.kind = ArgumentKind::Integer;
    made.integers = {number};
    return made;
  }
  static ArgumentT integers(std::vector<int64_t> numbers) {
    ArgumentT made;
    made.kind = ArgumentKind::Integers;
    made.integers = std::move(numbers);
    return made;
  }
  static ArgumentT number(double number) {
    ArgumentT made;
    made.kind = ArgumentKind::Number;
    made.numbers = {number};
    return made;
  }
  static ArgumentT boolean(bool is) {
    ArgumentT made;
    made.kind = ArgumentKind::Boolean;
    made.integers = {is};
    return made;
  }

  uint32_t input(Role role, uint32_t index) {
    graph.inputs.emplace_back(graph.values, index, role);
    return graph.values++;
  }
  int32_t call(const char *name, const char *overload, Arguments arguments) {
    return calls(name, overload, std::move(arguments), 1)[0];
  }
  std::vector<int32_t> calls(const char *name, const char *overload,
                             Arguments arguments, int results) {
    auto made = std::make_unique<program::CallT>();
    made->operator_ = name;
    made->overload = overload;
    for (ArgumentT &argument : arguments)
      made->arguments.push_back(
          std::make_unique<ArgumentT>(std::move(argument)));
    for (int i = 0; i < results; ++i)
      made->results.push_back(static_cast<int32_t>(graph.values++));
    graph.calls.push_back(std::move(made));
    return graph.calls.back()->results;
  }
  void output(Role role, uint32_t index, int32_t value) {
    graph.outputs.emplace_back(static_cast<uint32_t>(value), index, role);
  }

  std::string refusal() {
    try {
      Executable(graph, /*samples=*/1, at::kCPU);
      return "(accepted)";
    } catch (const std::invalid_argument &error) {
      return error.what();
    }
  }

  static at::Tensor range(at::IntArrayRef shape) {
    return at::arange(1, 1 + c10::multiply_integers(shape), at::kDouble)
        .view(shape);
  }

  program::GraphT graph;
};

TEST_F(ExecutableTest, runsWhatIsWantedAndFreesTheRest) {
  const auto x = input(Role::Input, 0);
  const int32_t doubled =
      call("aten::mul", "Tensor", {value(int32_t(x)), number(2)});
  const int32_t wasted = call("aten::neg", "", {value(doubled)});
  const std::vector<int32_t> halves = calls(
      "aten::split", "Tensor", {value(doubled), integer(2), integer(0)}, 2);
  output(Role::Output, 0, halves[1]);
  output(Role::Output, 1, wasted);
  const Executable executable(graph, /*samples=*/1, at::kCPU);
  const Subgraph subgraph = executable.selectSubgraph(
      {x}, {static_cast<uint32_t>(halves[1])}, /*adds=*/false);
  EXPECT_EQ(subgraph.calls, (std::vector<uint32_t>{0, 2}));
  Executable::Values found = executable.makeValues();
  found[x] = range({4});
  executable.run(subgraph, found, {});
  EXPECT_TRUE(found[static_cast<size_t>(halves[1])].equal(
      at::tensor({6.0, 8.0}, at::kDouble)));
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].defined(), i == static_cast<size_t>(halves[1])) << i;
}

TEST_F(ExecutableTest, wantsItsInputs) {
  const auto x = input(Role::Input, 0);
  output(Role::Output, 0, call("aten::neg", "", {value(int32_t(x))}));
  const Executable executable(graph, /*samples=*/1, at::kCPU);
  EXPECT_THROW(executable.selectSubgraph({}, {1}, /*adds=*/false),
               std::invalid_argument);
}

// dW = gᵀ x, as autograd computes it for a linear layer: it transposes the
// product twice.
TEST_F(ExecutableTest, addsAWeightGradientByTheProductThatMakesIt) {
  const auto g = input(Role::OutputGradient, 0), x = input(Role::Saved, 0);
  const int32_t turned = call("aten::t", "", {value(int32_t(g))});
  const int32_t product =
      call("aten::mm", "", {value(turned), value(int32_t(x))});
  const int32_t back = call("aten::t", "", {value(product)});
  const int32_t result = call("aten::t", "", {value(back)});
  output(Role::WeightGradient, 0, result);
  const Executable executable(graph, /*samples=*/1, at::kCPU);
  const Subgraph subgraph =
      executable.selectSubgraph({g, x}, {}, /*adds=*/true);
  // The subgraph has no calls for the two transposes of the product.
  EXPECT_EQ(subgraph.calls.size(), 2u);
  for (at::ScalarType type : {at::kDouble, at::kFloat})
    for (bool hasBegun : {false, true}) {
      GradientSum sum{at::full({3, 2}, 7, type), hasBegun};
      Executable::Values found = executable.makeValues();
      found[g] = range({4, 3}).to(type);
      found[x] = range({4, 2}).to(type);
      const at::Tensor expected =
          found[g].t().mm(found[x]).add_(hasBegun ? 7 : 0);
      Executable::Context context;
      context.sums = {&sum};
      executable.run(subgraph, found, context);
      EXPECT_TRUE(sum.gradient.equal(expected)) << sum.gradient;
      EXPECT_TRUE(sum.hasBegun);
    }
}

TEST_F(ExecutableTest, addsAWeightGradientThatIsGiven) {
  const auto saved = input(Role::Saved, 0);
  output(Role::WeightGradient, 0, static_cast<int32_t>(saved));
  const Executable executable(graph, /*samples=*/1, at::kCPU);
  const Subgraph subgraph =
      executable.selectSubgraph({saved}, {}, /*adds=*/true);
  GradientSum sum{at::zeros({2}, at::kDouble), false};
  Executable::Values found = executable.makeValues();
  found[saved] = range({2});
  Executable::Context context;
  context.sums = {&sum};
  executable.run(subgraph, found, context);
  EXPECT_TRUE(sum.gradient.equal(range({2})));
}

TEST_F(ExecutableTest, refusesAGradientOfAnotherShape) {
  const auto saved = input(Role::Saved, 0);
  output(Role::WeightGradient, 0,
         call("aten::neg", "", {value(int32_t(saved))}));
  const Executable executable(graph, /*samples=*/1, at::kCPU);
  const Subgraph subgraph =
      executable.selectSubgraph({saved}, {}, /*adds=*/true);
  GradientSum sum{at::zeros({2, 2}, at::kDouble), true};
  Executable::Values found = executable.makeValues();
  found[saved] = range({2});
  Executable::Context context;
  context.sums = {&sum};
  EXPECT_THROW(executable.run(subgraph, found, context), std::runtime_error);
}

TEST_F(ExecutableTest, dropsWhatTheRuntimeSays) {
  const auto x = input(Role::Input, 0);
  const std::vector<int32_t> first =
      calls("aten::native_dropout", "",
            {value(int32_t(x)), number(0.5), boolean(true)}, 2);
  const std::vector<int32_t> second =
      calls("aten::native_dropout", "",
            {value(int32_t(x)), number(0.5), boolean(true)}, 2);
  output(Role::Output, 0, first[0]);
  output(Role::Output, 1, second[0]);
  const Executable executable(graph, /*samples=*/1, at::kCPU);
  std::vector<uint32_t> wanted = {static_cast<uint32_t>(first[0]),
                                  static_cast<uint32_t>(second[0])};
  const Subgraph subgraph =
      executable.selectSubgraph({x}, wanted, /*adds=*/false);
  auto run = [&](std::optional<MicroBatch> microBatch) {
    Executable::Context context;
    context.seed = 3;
    context.layer = 5;
    context.dropped = microBatch;
    Executable::Values found = executable.makeValues();
    found[x] = at::ones({4, 64}, at::kDouble);
    executable.run(subgraph, found, context);
    return std::pair(found[wanted[0]], found[wanted[1]]);
  };
  auto [a, b] = run(MicroBatch{.step = 1, .index = 2});
  EXPECT_FALSE(a.equal(b)); // each dropout call drops other elements
  const Dropout documented(0.5, 3, 5, MicroBatch{.step = 1, .index = 2},
                           nullptr);
  for (auto [made, site] : {std::pair(a, 0), std::pair(b, 1)})
    EXPECT_TRUE(
        made.equal(documented.mask(DropoutSite(site), 256, 0, {4, 64}, at::kCPU)
                       .to(at::kDouble)
                       .mul(2)));
  // The dropout of a part drops the same elements of its samples as the dropout
  // of the whole micro-batch.
  auto half = run(MicroBatch{.step = 1, .index = 1, .part = 1, .parts = 2});
  EXPECT_TRUE(half.first.equal(
      documented.mask(DropoutSite(0), 256, 256, {4, 64}, at::kCPU)
          .to(at::kDouble)
          .mul(2)));
  EXPECT_TRUE(run(std::nullopt).first.equal(at::ones({4, 64}, at::kDouble)));
}

TEST_F(ExecutableTest, refusesOperatorsThatAreNotListed) {
  const auto x = input(Role::Input, 0);
  call("aten::from_file", "", {value(int32_t(x))});
  EXPECT_EQ(refusal(),
            "expected an operator that exported models may call, got "
            "'aten::from_file'");
}

TEST_F(ExecutableTest, refusesOperatorsThatChangeTheirArguments) {
  const auto x = input(Role::Input, 0);
  call("aten::add", "out",
       {value(int32_t(x)), value(int32_t(x)), integer(1), value(int32_t(x))});
  EXPECT_EQ(refusal(), "expected an operator that changes none of its "
                       "arguments, got 'aten::add.out'");
}

TEST_F(ExecutableTest, refusesDropoutThatKeepsOrDropsAll) {
  const auto x = input(Role::Input, 0);
  for (auto [dropped, acts] :
       {std::pair(0.0, true), std::pair(1.0, true), std::pair(-0.5, true),
        std::pair(std::nan(""), true), std::pair(0.5, false)}) {
    graph.calls.clear();
    calls("aten::native_dropout", "",
          {value(int32_t(x)), number(dropped), boolean(acts)}, 2);
    EXPECT_EQ(refusal(), "expected a tensor, a probability in (0, 1) and true "
                         "for 'aten::native_dropout'");
  }
}

// The argument of the transpose is a number. It has no call that computed it.
TEST_F(ExecutableTest, takesNumbersForTensors) {
  output(Role::WeightGradient, 0, call("aten::t", "", {number(3)}));
  const Executable executable(graph, /*samples=*/1, at::kCPU);
  const Subgraph subgraph = executable.selectSubgraph({}, {}, /*adds=*/true);
  GradientSum sum{at::zeros({}, at::kDouble), false};
  Executable::Values found = executable.makeValues();
  Executable::Context context;
  context.sums = {&sum};
  executable.run(subgraph, found, context);
  EXPECT_EQ(sum.gradient.item<double>(), 3);
}

// With this option, the kernel does not check indices before it writes.
TEST_F(ExecutableTest, refusesGradientsScaledByFrequency) {
  const auto g = input(Role::OutputGradient, 0), x = input(Role::Input, 0);
  call("aten::embedding_dense_backward", "",
       {value(int32_t(g)), value(int32_t(x)), integer(5), integer(-1),
        boolean(true)});
  EXPECT_EQ(refusal(), "expected an embedding whose gradient is not scaled by "
                       "how often a token occurs");
}

TEST_F(ExecutableTest, refusesUnknownOverloads) {
  const auto x = input(Role::Input, 0);
  call("aten::add", "None", {value(int32_t(x))});
  EXPECT_EQ(refusal().find("expected an operator of this LibTorch, got "
                           "'aten::add.None'"),
            0u);
}

TEST_F(ExecutableTest, refusesOtherNumbersOfArguments) {
  const auto x = input(Role::Input, 0);
  call("aten::neg", "", {value(int32_t(x)), integer(1)});
  EXPECT_EQ(refusal(), "expected 1 arguments of 'aten::neg', got 2");
}

TEST_F(ExecutableTest, refusesOtherNumbersOfResults) {
  const auto x = input(Role::Input, 0);
  calls("aten::neg", "", {value(int32_t(x))}, 2);
  EXPECT_EQ(refusal(), "expected 1 results of 'aten::neg', got 2");
}

TEST_F(ExecutableTest, refusesArgumentsOfOtherTypes) {
  const auto x = input(Role::Input, 0);
  call("aten::transpose", "int", {value(int32_t(x)), number(0.5), integer(1)});
  EXPECT_EQ(refusal(), "expected an integer as 'dim0' of "
                       "'aten::transpose.int', got an argument of kind "
                       "Number");
  graph.calls.clear();
  call("aten::transpose", "int",
       {value(int32_t(x)), value(int32_t(x)), integer(1)});
  EXPECT_NE(refusal().find("as 'dim0' of 'aten::transpose.int', got a tensor"),
            std::string::npos);
  graph.calls.clear();
  call("aten::neg", "", {values({int32_t(x)})});
  EXPECT_NE(refusal().find("got a list of tensors"), std::string::npos);
  graph.calls.clear();
  call("aten::view", "", {value(int32_t(x)), integer(3)});
  EXPECT_NE(refusal().find("expected a list of int as 'size'"),
            std::string::npos)
      << refusal();
}

TEST_F(ExecutableTest, saysWhichCallFails) {
  const auto x = input(Role::Input, 0);
  output(Role::Output, 0,
         call("aten::view", "", {value(int32_t(x)), integers({5})}));
  const Executable executable(graph, /*samples=*/1, at::kCPU);
  const Subgraph subgraph = executable.selectSubgraph({x}, {1}, /*adds=*/false);
  Executable::Values found = executable.makeValues();
  found[x] = range({4});
  try {
    executable.run(subgraph, found, {});
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_EQ(std::string(error.what()).find("call 0, aten::view: "), 0u)
        << error.what();
  }
}

} // namespace
} // namespace chimera::runtime
