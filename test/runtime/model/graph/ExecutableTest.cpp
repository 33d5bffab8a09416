//===- ExecutableTest.cpp - Executable graphs -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Executable.h"
#include "runtime/model/graph/Attention.h"
#include "runtime/program/GraphMaker.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace chimera::runtime {
namespace {

using program::GraphMaker;
using program::Role;

// A test that makes a graph call by call.
class ExecutableTest : public testing::Test {
protected:
  using Extents = program::Extents;
  using Value = GraphMaker::Value;
  using Operand = GraphMaker::Operand;
  using Numbers = std::vector<uint32_t>;

  /// The graph for one sample.
  Executable build() {
    finished = graph.finish();
    return Executable(*finished, /*samples=*/1, at::kCPU);
  }

  std::string refusal() {
    try {
      build();
      return "(accepted)";
    } catch (const std::invalid_argument &error) {
      return error.what();
    }
  }

  static Numbers numbers(const std::vector<Value> &values) {
    Numbers result;
    for (Value value : values)
      result.push_back(value.number);
    return result;
  }

  static at::Tensor range(at::IntArrayRef shape) {
    return at::arange(1, 1 + c10::multiply_integers(shape), at::kDouble)
        .view(shape);
  }

  GraphMaker graph;

private:
  std::unique_ptr<program::GraphT> finished;
  // As in a stage: a view keeps no reference to its base.
  at::AutoDispatchBelowADInplaceOrView kernelsAlone;
};

// A sum takes the memory of an operand only if nothing else uses this memory.
TEST_F(ExecutableTest, sumsInPlace) {
  // Each operand of the sum is an input of the graph, a view of it, a new
  // tensor, a view of a new tensor, or a part of one. It may be used after the
  // sum.
  enum Kind { Given, ViewOfGiven, New, ViewOfNew, PartOfNew };
  for (Kind left : {Given, ViewOfGiven, New, ViewOfNew, PartOfNew})
    for (Kind right : {Given, ViewOfGiven, New, ViewOfNew, PartOfNew})
      for (bool isUsedLater : {false, true})
        for (bool isOfCaller : {false, true}) {
          graph = {};
          const Value x = graph.input(Role::Input, 0);
          const Value y = graph.input(Role::Input, 1);
          auto make = [&](Kind kind, Value made) {
            if (kind == New || kind == ViewOfNew)
              made = graph.call("aten::mul.Tensor", {made, 3.0});
            if (kind == ViewOfGiven || kind == ViewOfNew)
              made = graph.call("aten::view", {made, Extents{{6}}});
            if (kind == PartOfNew) {
              const Value stacked =
                  graph.call("aten::stack", {Operand::values({made, made}), 0});
              const Value tripled =
                  graph.call("aten::mul.Tensor", {stacked, 3.0});
              made = graph.call("aten::select.int", {tripled, 0, 1});
            }
            return made;
          };
          const Value a = make(left, x), b = make(right, y);
          const Value sum = graph.call("aten::add.Tensor", {a, b, 1});
          Numbers wanted = {sum.number};
          if (isUsedLater)
            wanted.push_back(a.number);
          const Executable executable = build();
          const Subgraph subgraph = executable.selectSubgraph(
              numbers({x, y}), wanted, /*adds=*/false);
          // The caller's memory is not LibTorch's.
          std::vector<double> memory = {1, 2, 3, 4, 5, 6};
          at::Tensor first =
              isOfCaller ? at::from_blob(memory.data(), {6}, at::kDouble)
                         : range({6});
          at::Tensor second = range({6}).mul(10);
          Executable::Values values = executable.makeValues();
          values[x.number] = first;
          values[y.number] = second;
          if (isOfCaller)
            first.reset();
          executable.run(subgraph, values, {});
          const double m = left >= New ? 3 : 1, n = right >= New ? 30 : 10;
          EXPECT_TRUE(values[sum.number].equal(range({6}).mul(m + n)));
          EXPECT_TRUE(!isUsedLater ||
                      values[a.number].equal(range({6}).mul(m)));
          // The sum keeps no larger memory than it needs.
          EXPECT_EQ(values[sum.number].storage().nbytes(), 6 * sizeof(double));
          EXPECT_EQ(memory, (std::vector<double>{1, 2, 3, 4, 5, 6}));
          EXPECT_TRUE(!first.defined() || first.equal(range({6})));
          EXPECT_TRUE(second.equal(range({6}).mul(10)));
        }
}

TEST_F(ExecutableTest, sumsInTheMemoryOfTheOperandThatIsFree) {
  const Value x = graph.input(Role::Input, 0), y = graph.input(Role::Input, 1);
  const uint32_t sum = graph.call("aten::add.Tensor", {x, y, 1}).number;
  const Executable executable = build();
  for (auto [free, used] : {std::pair(x, y), std::pair(y, x)}) {
    const Subgraph subgraph = executable.selectSubgraph(
        numbers({x, y}), {sum, used.number}, /*adds=*/false);
    Executable::Values values = executable.makeValues();
    values[x.number] = range({6});
    values[y.number] = range({6});
    const void *memory = values[free.number].const_data_ptr();
    executable.run(subgraph, values, {});
    EXPECT_EQ(values[sum].const_data_ptr(), memory);
    EXPECT_TRUE(values[sum].equal(range({6}).mul(2)));
  }
}

TEST_F(ExecutableTest, runsWhatIsWantedAndFreesTheRest) {
  const Value x = graph.input(Role::Input, 0);
  const Value doubled = graph.call("aten::mul.Tensor", {x, 2.0});
  const Value wasted = graph.call("aten::neg", {doubled});
  const std::array<Value, 2> halves =
      graph.calls<2>("aten::split.Tensor", {doubled, 2, 0});
  graph.output(Role::Output, 0, halves[1]);
  graph.output(Role::Output, 1, wasted);
  const Executable executable = build();
  const Subgraph subgraph = executable.selectSubgraph(
      numbers({x}), {halves[1].number}, /*adds=*/false);
  EXPECT_EQ(subgraph.calls, (std::vector<uint32_t>{0, 2}));
  Executable::Values found = executable.makeValues();
  found[x.number] = range({4});
  executable.run(subgraph, found, {});
  EXPECT_TRUE(
      found[halves[1].number].equal(at::tensor({6.0, 8.0}, at::kDouble)));
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].defined(), i == halves[1].number) << i;
}

TEST_F(ExecutableTest, wantsItsInputs) {
  const Value x = graph.input(Role::Input, 0);
  graph.output(Role::Output, 0, graph.call("aten::neg", {x}));
  const Executable executable = build();
  EXPECT_THROW(executable.selectSubgraph({}, {1}, /*adds=*/false),
               std::invalid_argument);
}

// dW = gᵀ x, as autograd computes it for a linear layer: it transposes the
// product twice.
TEST_F(ExecutableTest, addsAWeightGradientByTheProductThatMakesIt) {
  const Value g = graph.input(Role::OutputGradient, 0),
              x = graph.input(Role::Saved, 0);
  const Value turned = graph.call("aten::t", {g});
  const Value product = graph.call("aten::mm", {turned, x});
  const Value back = graph.call("aten::t", {product});
  const Value result = graph.call("aten::t", {back});
  graph.output(Role::WeightGradient, 0, result);
  const Executable executable = build();
  const Subgraph subgraph =
      executable.selectSubgraph(numbers({g, x}), {}, /*adds=*/true);
  // The subgraph has no calls for the two transposes of the product.
  EXPECT_EQ(subgraph.calls.size(), 2u);
  for (at::ScalarType type : {at::kDouble, at::kFloat})
    for (bool hasBegun : {false, true}) {
      GradientSum sum{at::full({3, 2}, 7, type), hasBegun};
      Executable::Values found = executable.makeValues();
      found[g.number] = range({4, 3}).to(type);
      found[x.number] = range({4, 2}).to(type);
      const at::Tensor expected =
          found[g.number].t().mm(found[x.number]).add_(hasBegun ? 7 : 0);
      Executable::Context context;
      context.sums = {&sum};
      executable.run(subgraph, found, context);
      EXPECT_TRUE(sum.gradient.equal(expected)) << sum.gradient;
      EXPECT_TRUE(sum.hasBegun);
    }
}

// A sum of bfloat16 numbers in bfloat16 would end at 256.
TEST_F(ExecutableTest, addsGradientsOfEmbeddingsInFloat32) {
  constexpr int64_t kTokens = 1000;
  const Value g = graph.input(Role::OutputGradient, 0),
              tokens = graph.input(Role::Saved, 0);
  graph.output(
      Role::WeightGradient, 0,
      graph.call("aten::embedding_dense_backward", {g, tokens, 3, -1, false}));
  const Executable executable = build();
  const Subgraph subgraph =
      executable.selectSubgraph(numbers({g, tokens}), {}, /*adds=*/true);
  Executable::Values found = executable.makeValues();
  found[g.number] = at::ones({kTokens, 2}, at::kBFloat16);
  found[tokens.number] = at::ones({kTokens}, at::kLong);
  GradientSum sum{at::zeros({3, 2}), false};
  Executable::Context context;
  context.sums = {&sum};
  executable.run(subgraph, found, context);
  const at::Tensor wanted = at::zeros({3, 2});
  wanted[1].fill_(kTokens);
  EXPECT_TRUE(sum.gradient.equal(wanted)) << sum.gradient;
}

// A device's kernels may give other strides than those of the trace.
TEST_F(ExecutableTest, aViewThatIsImpossibleIsACopy) {
  for (const char *view : {"aten::view", "aten::_unsafe_view"}) {
    graph = {};
    const Value x = graph.input(Role::Input, 0);
    const Value flat = graph.call(view, {x, Extents{{6}}});
    graph.output(Role::Output, 0, flat);
    const Executable executable = build();
    const Subgraph subgraph = executable.selectSubgraph(
        numbers({x}), numbers({flat}), /*adds=*/false);
    for (bool isTransposed : {false, true}) {
      Executable::Values found = executable.makeValues();
      const at::Tensor given = isTransposed ? range({3, 2}).t() : range({2, 3});
      found[x.number] = given;
      executable.run(subgraph, found, {});
      const at::Tensor &made = found[flat.number];
      EXPECT_TRUE(made.equal(given.reshape({6}))) << made;
      EXPECT_EQ(made.is_alias_of(given), !isTransposed);
    }
  }
}

TEST_F(ExecutableTest, addsAWeightGradientThatIsGiven) {
  const Value saved = graph.input(Role::Saved, 0);
  graph.output(Role::WeightGradient, 0, saved);
  const Executable executable = build();
  const Subgraph subgraph =
      executable.selectSubgraph(numbers({saved}), {}, /*adds=*/true);
  GradientSum sum{at::zeros({2}, at::kDouble), false};
  Executable::Values found = executable.makeValues();
  found[saved.number] = range({2});
  Executable::Context context;
  context.sums = {&sum};
  executable.run(subgraph, found, context);
  EXPECT_TRUE(sum.gradient.equal(range({2})));
}

TEST_F(ExecutableTest, refusesAGradientOfAnotherShape) {
  const Value saved = graph.input(Role::Saved, 0);
  graph.output(Role::WeightGradient, 0, graph.call("aten::neg", {saved}));
  const Executable executable = build();
  const Subgraph subgraph =
      executable.selectSubgraph(numbers({saved}), {}, /*adds=*/true);
  GradientSum sum{at::zeros({2, 2}, at::kDouble), true};
  Executable::Values found = executable.makeValues();
  found[saved.number] = range({2});
  Executable::Context context;
  context.sums = {&sum};
  EXPECT_THROW(executable.run(subgraph, found, context), std::runtime_error);
}

TEST_F(ExecutableTest, dropsWhatTheRuntimeSays) {
  const Value x = graph.input(Role::Input, 0);
  const Value first = graph.call("chimera::dropout", {x, 0.5, 0});
  const Value second = graph.call("chimera::dropout", {x, 0.5, 1});
  // A backward has no number of its own: it drops what its forward drops.
  const Value back = graph.call("chimera::dropout_backward", {x, 0.5, 0});
  for (Value value : {first, second, back})
    graph.output(Role::Output, value.number - first.number, value);
  const Executable executable = build();
  const Numbers wanted = {first.number, second.number, back.number};
  const Subgraph subgraph =
      executable.selectSubgraph(numbers({x}), wanted, /*adds=*/false);
  auto run = [&](std::optional<MicroBatch> microBatch) {
    Executable::Context context;
    context.calls.seed = 3;
    context.calls.layer = 5;
    context.calls.dropped = microBatch;
    Executable::Values found = executable.makeValues();
    found[x.number] = at::ones({4, 64}, at::kDouble);
    executable.run(subgraph, found, context);
    EXPECT_TRUE(found[wanted[2]].equal(found[wanted[0]]));
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

// An attention with dropout counts as a call with dropout, and states its
// number.
TEST_F(ExecutableTest, numbersAttentionsWithDropout) {
  const Value x = graph.input(Role::Input, 0);
  const Value q = x;
  graph.call("chimera::dropout", {q, 0.5, 0});
  const auto attend = [&](double dropped, int64_t site) {
    return graph.calls<2>("chimera::attention",
                          {q, q, q, std::nullopt, dropped, true, 0.5, site});
  };
  attend(0, 0); // drops nothing, so it has no number
  const std::array<Value, 2> second = attend(0.25, 1);
  const Value third = graph.call("chimera::dropout", {q, 0.5, 2});
  const Executable executable = build();
  const Numbers wanted = {second[0].number, third.number};
  const Subgraph subgraph =
      executable.selectSubgraph(numbers({x}), wanted, /*adds=*/false);
  Executable::Context context;
  context.calls = {.seed = 3,
                   .layer = 5,
                   .dropped = MicroBatch{.step = 1, .index = 2},
                   .kernels = nullptr};
  Executable::Values found = executable.makeValues();
  const at::Tensor given = range({2, 2, 4, 8}).div(100);
  found[x.number] = given;
  executable.run(subgraph, found, context);
  const AttentionCall call{.query = given,
                           .key = given,
                           .value = given,
                           .mask = {},
                           .isCausal = true,
                           .scale = 0.5,
                           .site = DropoutSite(1)};
  EXPECT_TRUE(found[wanted[0]].equal(
      attention(call, Dropout(0.25, 3, 5, context.calls.dropped, nullptr))
          .output));
  EXPECT_TRUE(
      found[wanted[1]].equal(Dropout(0.5, 3, 5, context.calls.dropped, nullptr)
                                 .apply(DropoutSite(2), given)));
  attend(0.25, 5);
  EXPECT_EQ(refusal(), "expected the number of earlier calls with dropout as "
                       "the site of an attention");
  graph = {};
  graph.call("chimera::dropout", {q, 0.25, 4});
  EXPECT_EQ(refusal(), "expected the number of earlier calls with dropout as "
                       "the site of a dropout");
}

TEST_F(ExecutableTest, refusesAttentionsWithOtherArguments) {
  const Value x = graph.input(Role::Input, 0);
  const Value q = x;
  for (double dropped : {-0.1, 1.0, std::nan("")}) {
    graph = {};
    graph.calls<2>("chimera::attention",
                   {q, q, q, std::nullopt, dropped, true, 0.5, 0});
    EXPECT_NE(refusal().find("expected a probability in [0, 1)"),
              std::string::npos)
        << dropped;
  }
}

TEST_F(ExecutableTest, refusesOperatorsThatAreNotListed) {
  const Value x = graph.input(Role::Input, 0);
  graph.call("aten::from_file", {x});
  EXPECT_EQ(refusal(), "expected an operator that packages may call, got "
                       "'aten::from_file'");
}

TEST_F(ExecutableTest, refusesOperatorsThatChangeTheirArguments) {
  const Value x = graph.input(Role::Input, 0);
  graph.call("aten::add.out", {x, x, 1, x});
  EXPECT_EQ(refusal(), "expected an operator that changes none of its "
                       "arguments, got 'aten::add.out'");
}

TEST_F(ExecutableTest, refusesDropoutThatKeepsOrDropsAll) {
  const Value x = graph.input(Role::Input, 0);
  for (const char *name : {"chimera::dropout", "chimera::dropout_backward"})
    for (double dropped : {0.0, 1.0, -0.5, std::nan("")}) {
      graph = {};
      graph.call(name, {x, dropped, 0});
      EXPECT_EQ(refusal(), "expected a tensor, a probability in (0, 1) and a "
                           "site for a dropout")
          << name << " " << dropped;
    }
}

// The argument of the transpose is a number. It has no call that computed it.
TEST_F(ExecutableTest, takesNumbersForTensors) {
  graph.output(Role::WeightGradient, 0, graph.call("aten::t", {3.0}));
  const Executable executable = build();
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
  const Value g = graph.input(Role::OutputGradient, 0),
              x = graph.input(Role::Input, 0);
  graph.call("aten::embedding_dense_backward", {g, x, 5, -1, true});
  EXPECT_EQ(refusal(), "expected an embedding whose gradient is not scaled by "
                       "how often a token occurs");
}

TEST_F(ExecutableTest, refusesUnknownOverloads) {
  const Value x = graph.input(Role::Input, 0);
  graph.call("aten::add.None", {x});
  EXPECT_EQ(refusal().find("expected an operator of this LibTorch, got "
                           "'aten::add.None'"),
            0u);
}

TEST_F(ExecutableTest, refusesOtherNumbersOfArguments) {
  const Value x = graph.input(Role::Input, 0);
  graph.call("aten::neg", {x, 1});
  EXPECT_EQ(refusal(), "expected 1 arguments of 'aten::neg', got 2");
}

TEST_F(ExecutableTest, refusesOtherNumbersOfResults) {
  const Value x = graph.input(Role::Input, 0);
  graph.calls<2>("aten::neg", {x});
  EXPECT_EQ(refusal(), "expected 1 results of 'aten::neg', got 2");
}

TEST_F(ExecutableTest, refusesArgumentsOfOtherTypes) {
  const Value x = graph.input(Role::Input, 0);
  graph.call("aten::transpose.int", {x, 0.5, 1});
  EXPECT_EQ(refusal(), "expected an integer as 'dim0' of "
                       "'aten::transpose.int', got an argument of kind "
                       "Number");
  graph = {};
  graph.call("aten::transpose.int", {x, x, 1});
  EXPECT_NE(refusal().find("as 'dim0' of 'aten::transpose.int', got a tensor"),
            std::string::npos);
  graph = {};
  graph.call("aten::neg", {Operand::values({x})});
  EXPECT_NE(refusal().find("got a list of tensors"), std::string::npos);
  graph = {};
  graph.call("aten::view", {x, 3});
  EXPECT_NE(refusal().find("expected a list of int as 'size'"),
            std::string::npos)
      << refusal();
}

TEST_F(ExecutableTest, saysWhichCallFails) {
  const Value x = graph.input(Role::Input, 0);
  graph.output(Role::Output, 0, graph.call("aten::view", {x, Extents{{5}}}));
  const Executable executable = build();
  const Subgraph subgraph =
      executable.selectSubgraph(numbers({x}), {1}, /*adds=*/false);
  Executable::Values found = executable.makeValues();
  found[x.number] = range({4});
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
