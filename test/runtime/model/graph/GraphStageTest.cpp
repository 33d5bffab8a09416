//===- GraphStageTest.cpp - Layers of PyTorch models ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/e2e/exported.py trains models that the exporter made.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Tensors.h"
#include "test/runtime/model/graph/GraphStageFixture.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>

namespace chimera::runtime {
namespace {

enum class Way { Whole, Split, Recomputed };

struct Case {
  std::vector<uint32_t> layers;
  uint32_t parts;
  Way way;
};

class EachWay : public GraphStageTest,
                public testing::WithParamInterface<Case> {};

TEST_P(EachWay, EachModeOfABackward) {
  const auto &[layers, parts, way] = GetParam();
  const program::ProgramT program = sampleProgram(layers);
  const size_t count = layers.size();
  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<std::vector<double>> weight(count), gradient(count);
  const std::vector<double> all = weights();
  auto next = all.begin();
  for (uint32_t s = 0; s < count; ++s) {
    stages.push_back(makeGraphStage(program, s));
    const auto size = static_cast<ptrdiff_t>(program.stages[s].weights_bytes() /
                                             sizeof(double));
    weight[s].assign(next, next + size);
    gradient[s].assign(static_cast<size_t>(size), 100);
    next += size;
  }
  double loss = 0;
  for (uint32_t part = 0; part < parts; ++part) {
    const MicroBatch piece{.step = 0, .index = 0, .part = part, .parts = parts};
    const WgradMode mode = part == 0 ? WgradMode::Overwrite : WgradMode::Add;
    const size_t rows = tokens.size() / parts;
    std::vector<int64_t> in(tokens.begin() + part * rows,
                            tokens.begin() + (part + 1) * rows);
    std::vector<int64_t> target(rows);
    std::vector<std::vector<double>> out(count);
    std::vector<std::unique_ptr<Stash>> stashes(count);
    auto inputOf = [&](size_t s) {
      return s == 0 ? bytesOf(in) : bytesOf(out[s - 1]);
    };
    for (size_t s = 0; s < count; ++s) {
      const bool last = s + 1 == count;
      out[s].resize(last ? 1 : rows * 3);
      stashes[s] = stages[s]->forward(
          piece, inputOf(s), last ? bytesOf(target) : Bytes(),
          bytesOf(weight[s]), bytesOf(out[s]),
          way == Way::Recomputed ? ForwardMode::Output : ForwardMode::Both);
      if (way == Way::Recomputed) {
        EXPECT_EQ(stashes[s], nullptr);
        stashes[s] = stages[s]->forward(
            piece, inputOf(s), last ? bytesOf(target) : Bytes(),
            bytesOf(weight[s]), {}, ForwardMode::Stash);
      }
    }
    loss += out.back()[0];
    std::vector<double> whole = {0};
    std::vector<double> back = whole;
    for (size_t s = count; s-- > 0;) {
      std::vector<double> to(s == 0 ? 0 : rows * 3);
      if (way == Way::Split) {
        auto rest = stages[s]->inputGradient(piece, std::move(stashes[s]),
                                             bytesOf(back), bytesOf(weight[s]),
                                             bytesOf(to));
        stages[s]->weightGradient(piece, std::move(rest), bytesOf(weight[s]),
                                  bytesOf(gradient[s]), mode);
      } else {
        stages[s]->backward(piece, std::move(stashes[s]), bytesOf(back),
                            bytesOf(weight[s]), bytesOf(gradient[s]),
                            bytesOf(to), mode);
      }
      back = to;
    }
  }
  // The loss of a micro-batch is the mean of the losses of its parts. So the
  // share of a part is its own loss divided by the number of parts.
  EXPECT_DOUBLE_EQ(loss, expectedLoss() / parts);
  std::vector<double> found;
  for (const auto &part : gradient)
    found.insert(found.end(), part.begin(), part.end());
  std::vector<double> expected = expectedGradients();
  for (double &value : expected)
    value /= parts;
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(GraphStage, EachWay,
                         testing::Values(Case{{3}, 1, Way::Whole},
                                         Case{{1, 1, 1}, 1, Way::Whole},
                                         Case{{1, 2}, 2, Way::Whole},
                                         Case{{3}, 1, Way::Split},
                                         Case{{2, 1}, 2, Way::Split},
                                         Case{{1, 1, 1}, 1, Way::Recomputed},
                                         Case{{2, 1}, 2, Way::Recomputed}));

// The weighted loss of a micro-batch is the sum of the losses of its parts. So
// the loss and the gradients of a part are not divided by the number of parts.
// The layers for parts of micro-batches are made with the stage. So the
// constant tensors of their calls, here a number, do not belong to the stash of
// the first part.
TEST_F(GraphStageTest, FirstPartsKeepNothingButTheirStash) {
  auto package = program::samplePackage();
  program::GraphT &forward = *package->kinds[0]->graphs->forward;
  auto product = std::make_unique<program::CallT>();
  product->operator_ = "aten::mul";
  product->overload = "Tensor";
  for (auto kind :
       {program::ArgumentKind::Value, program::ArgumentKind::Number}) {
    auto &argument =
        product->arguments.emplace_back(std::make_unique<program::ArgumentT>());
    argument->kind = kind;
  }
  product->arguments[0]->values = {
      static_cast<int32_t>(forward.outputs[0].value())};
  product->arguments[1]->numbers = {1.0};
  product->results = {static_cast<int32_t>(forward.values)};
  forward.calls.push_back(std::move(product));
  forward.outputs[0].mutate_value(forward.values++);
  program::ProgramT program = sampleProgram({3}, std::move(package));
  program.pipelines.push_back(std::make_unique<program::PipelineT>());
  program.pipelines[0]->backward_parts = 2;

  TensorMeter meter;
  const std::unique_ptr<Stage> stage = makeGraphStage(program, 0);
  std::vector<double> values = weights();
  tokens.resize(4);
  labels.resize(4);
  const int64_t before = meter.currentBytes();
  auto stash = stage->forward({0, 0, 0, 2}, bytesOf(tokens), bytesOf(labels),
                              bytesOf(values), {}, ForwardMode::Stash);
  EXPECT_GT(meter.currentBytes(), before);
  stash.reset();
  EXPECT_EQ(meter.currentBytes(), before);
}

TEST_F(GraphStageTest, sumsWeightedLosses) {
  program::ProgramT program = sampleProgram({3});
  program.model = program::weighedPackage();
  auto stage = makeGraphStage(program, 0);
  std::vector<double> all = weights(), gradient(21);
  double sum = 0;
  for (uint32_t part : {0, 1}) {
    const MicroBatch piece{.step = 0, .index = 0, .part = part, .parts = 2};
    std::vector<int64_t> in(tokens.begin() + 4 * part,
                            tokens.begin() + 4 * part + 4);
    std::vector<int64_t> target(4);
    double loss = 0;
    const Bytes bytes = std::as_writable_bytes(std::span(&loss, 1));
    auto stash = stage->forward(piece, bytesOf(in), bytesOf(target),
                                bytesOf(all), bytes);
    stage->backward(piece, std::move(stash), bytes, bytesOf(all),
                    bytesOf(gradient), {},
                    part == 0 ? WgradMode::Overwrite : WgradMode::Add);
    sum += loss;
  }
  EXPECT_DOUBLE_EQ(sum, expectedLoss());
  EXPECT_EQ(gradient, expectedGradients());
}

TEST_F(GraphStageTest, drawsItsParameters) {
  const program::ProgramT program = sampleProgram({1, 1, 1});
  std::vector<double> drawn(15), again(15), state(30, 1), ones(3), small(6);
  makeGraphStage(program, 0)->initialize(bytesOf(drawn), bytesOf(state));
  makeGraphStage(program, 0)->initialize(bytesOf(again), bytesOf(state));
  EXPECT_EQ(drawn, again);
  EXPECT_NE(drawn, std::vector<double>(15));
  EXPECT_EQ(state, std::vector<double>(30));
  makeGraphStage(program, 1)->initialize(bytesOf(ones), bytesOf(small));
  EXPECT_EQ(ones, std::vector<double>(3, 1));
}

TEST_F(GraphStageTest, drawsAsItsPackageSays) {
  constexpr int64_t kRows = 20000;
  auto package = program::samplePackage();
  package->kinds[0]->parameters[0]->shape = {kRows, 3};
  program::ProgramT program = sampleProgram({1, 2}, std::move(package));
  program::LayerParameterT &parameter = *program.model->kinds[0]->parameters[0];
  std::vector<double> state(6 * kRows);
  const auto drawn = [&](program::Initialization start) {
    parameter.start = start;
    std::vector<double> values(3 * kRows);
    makeGraphStage(program, 0)->initialize(bytesOf(values), bytesOf(state));
    return values;
  };
  struct Moments {
    double mean, deviation, least, most;
  };
  const auto momentsOf = [](const std::vector<double> &values) {
    const double count = static_cast<double>(values.size());
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0;
    for (double value : values)
      squares += (value - mean) * (value - mean);
    const auto [least, most] = std::ranges::minmax(values);
    return Moments{mean, std::sqrt(squares / count), least, most};
  };
  parameter.mean = -1;
  parameter.deviation = 0.5;
  parameter.low = -1.5;
  parameter.high = 2.5;
  EXPECT_EQ(drawn(program::Initialization::Constant),
            std::vector<double>(3 * kRows, -1));

  Moments found = momentsOf(drawn(program::Initialization::Normal));
  EXPECT_NEAR(found.mean, -1, 0.01);
  EXPECT_NEAR(found.deviation, 0.5, 0.01);
  EXPECT_LT(found.least, -2);

  found = momentsOf(drawn(program::Initialization::Uniform));
  EXPECT_NEAR(found.mean, 0.5, 0.02);
  EXPECT_NEAR(found.deviation, 4 / std::sqrt(12), 0.02);
  EXPECT_NEAR(found.least, -1.5, 1e-3);
  EXPECT_NEAR(found.most, 2.5, 1e-3);

  // A normal distribution without values that are more than one standard
  // deviation below the mean. The mean rises by phi(1) / Phi(1) = 0.2876
  // deviations. The variance of a standard normal becomes 1 - 0.2876 - 0.2876²
  // = 0.6297.
  found = momentsOf(drawn(program::Initialization::TruncatedNormal));
  EXPECT_NEAR(found.mean, -1 + 0.5 * 0.2876, 0.01);
  EXPECT_NEAR(found.deviation, 0.5 * std::sqrt(0.6297), 0.01);
  EXPECT_NEAR(found.least, -1.5, 1e-3);

  parameter.zero_row = 7;
  const std::vector<double> values = drawn(program::Initialization::Uniform);
  EXPECT_EQ(std::vector<double>(values.begin() + 21, values.begin() + 24),
            std::vector<double>(3));
  EXPECT_NE(values[20], 0);
  EXPECT_NE(values[24], 0);
}

/// Gives the last layer a graph of logits. The logits of a token are its three
/// summands of the loss.
void addLogits(program::ProgramT &program) {
  program::LayerGraphsT &graphs = *program.model->kinds[2]->graphs;
  graphs.logits = std::make_unique<program::GraphT>(*graphs.forward);
  graphs.logits->calls.pop_back();
  graphs.logits->outputs[0].mutate_value(2);
  graphs.vocabulary = 3;
}

class Given : public InitialValues {
public:
  void read(const std::string &name, program::DataType,
            const std::vector<int64_t> &, Bytes memory) const override {
    if (name != "embedding.weight")
      throw std::runtime_error("no " + name);
    auto *values = reinterpret_cast<double *>(memory.data());
    std::iota(values, values + memory.size() / sizeof(double), 1);
  }
};

TEST_F(GraphStageTest, beginsWithGivenValues) {
  const program::ProgramT program = sampleProgram({1, 2});
  std::vector<double> weight(15), state(30), rest(6), restState(12);
  auto values = std::make_shared<Given>();
  makeGraphStage(program, 0, values)
      ->initialize(bytesOf(weight), bytesOf(state));
  EXPECT_EQ(weight, embedding);
  EXPECT_THROW(makeGraphStage(program, 1, values)
                   ->initialize(bytesOf(rest), bytesOf(restState)),
               std::runtime_error);
}

TEST_F(GraphStageTest, wantsValuesThatItCannotDraw) {
  program::ProgramT program = sampleProgram({3});
  program.model->kinds[1]->parameters[0]->start =
      program::Initialization::Given;
  std::vector<double> weight(21), state(42);
  try {
    makeGraphStage(program, 0)->initialize(bytesOf(weight), bytesOf(state));
    FAIL();
  } catch (const std::invalid_argument &error) {
    EXPECT_NE(std::string(error.what()).find("initial values of 'block.scale'"),
              std::string::npos);
  }
}

TEST_F(GraphStageTest, predictsTheNextToken) {
  program::ProgramT program = sampleProgram({3});
  addLogits(program);
  class All : public InitialValues {
    void read(const std::string &name, program::DataType,
              const std::vector<int64_t> &, Bytes memory) const override {
      auto *values = reinterpret_cast<double *>(memory.data());
      std::iota(values, values + memory.size() / sizeof(double),
                name == "embedding.weight" ? 1 : 2);
    }
  };
  auto model = makePredictor(program, std::make_shared<All>());
  EXPECT_EQ(model->context(), 2u);
  EXPECT_EQ(model->vocabulary(), 3u);
  // The rows of the embedding are 1 2 3, 4 5 6, …. Scales and factors are 2 3
  // 4.
  const std::vector<int64_t> one = {1}, two = {1, 0};
  EXPECT_EQ(model->nextLogits(one), (std::vector<double>{16, 45, 96}));
  EXPECT_EQ(model->nextLogits(two), (std::vector<double>{4, 18, 48}));

  program.model->kinds[2]->graphs->logits.reset();
  EXPECT_THROW(makePredictor(program, nullptr), std::invalid_argument);
}

TEST_F(GraphStageTest, countsRightPredictions) {
  program::ProgramT program = sampleProgram({3});
  addLogits(program);
  // All numbers of the embedding are positive. So class 2, with the largest
  // product of scale and factor, has the largest logit of each token.
  labels = {2, 2, 0, 2, -100, 1, 2, 2};
  std::vector<double> weight = weights();
  for (uint32_t parts : {1u, 2u}) {
    const std::unique_ptr<Stage> stage = makeGraphStage(program, 0);
    double right = 0;
    for (uint32_t part = 0; part < parts; ++part) {
      double share = 0;
      const size_t bytes = 64 / parts;
      EXPECT_EQ(stage->forward({0, 0, part, parts},
                               bytesOf(tokens).subspan(part * bytes, bytes),
                               bytesOf(labels).subspan(part * bytes, bytes),
                               bytesOf(weight),
                               std::as_writable_bytes(std::span(&share, 1)),
                               ForwardMode::Accuracy),
                nullptr);
      right += share;
    }
    EXPECT_EQ(right, 5);
  }
}

TEST_F(GraphStageTest, refusesWhatItCannotRun) {
  auto refusal = [](const std::function<void(program::ProgramT &)> &change,
                    uint32_t stage = 0) -> std::string {
    program::ProgramT program = sampleProgram({1, 2});
    change(program);
    try {
      makeGraphStage(program, stage);
      return "";
    } catch (const std::invalid_argument &error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal([](auto &) {}), "");
  EXPECT_EQ(refusal([](auto &) {}, 2),
            "expected one of the program's 2 stages, got 2");
  EXPECT_EQ(refusal([](auto &program) { program.model = nullptr; }),
            "expected a program with a model, got one of bare stages, which "
            "the synthetic and exact stages can run");
  EXPECT_NE(refusal([](auto &program) {
              program.model->layers[1]->kind = 9;
            }).find("expected one of 3 kinds"),
            std::string::npos);
  EXPECT_EQ(refusal([](auto &program) { program.micro_batch_size = 0; }),
            "expected 1 to 1048576 samples in a micro-batch, got 0");
  EXPECT_NE(refusal([](auto &program) {
              program.stages[0].mutate_weights_bytes(8);
            }).find("expected 120 bytes of weights"),
            std::string::npos);
  // makeGraphStage refuses a graph with an operator that packages may not call.
  EXPECT_EQ(refusal([](auto &program) {
              program.model->kinds[0]->graphs->forward->calls[0]->operator_ =
                  "aten::from_file";
            }),
            "expected an operator that packages may call, got "
            "'aten::from_file'");
  EXPECT_EQ(
      refusal([](auto &program) { program.optimizer->name = "x"; }),
      "expected optimizer 'adamw', 'muon', 'sgd' or 'sgd-momentum', got 'x'");
}

TEST_F(GraphStageTest, refusesBytesThatAreNotItsOwn) {
  const program::ProgramT program = sampleProgram({1, 2});
  auto stage = makeGraphStage(program, 0);
  std::vector<double> weight(15), output(24), tooFew(23);
  EXPECT_THROW(
      stage->forward({}, bytesOf(tooFew), {}, bytesOf(weight), bytesOf(output)),
      std::invalid_argument);
  EXPECT_THROW(
      stage->forward({}, bytesOf(tokens), {}, bytesOf(weight), bytesOf(tooFew)),
      std::invalid_argument);
  // A backward with other weights than the forward that made its stash.
  std::vector<double> others(15), gradient(15);
  auto stash =
      stage->forward({}, bytesOf(tokens), {}, bytesOf(weight), bytesOf(output));
  EXPECT_THROW(stage->backward({}, std::move(stash), bytesOf(output),
                               bytesOf(others), bytesOf(gradient), {}),
               std::invalid_argument);
  // Use row 7 of a table with 5 rows. The message names the layer and the call.
  tokens[3] = 7;
  try {
    stage->forward({}, bytesOf(tokens), {}, bytesOf(weight), bytesOf(output));
    FAIL();
  } catch (const std::exception &error) {
    EXPECT_EQ(std::string(error.what())
                  .find("layer 0 (embedding): call 0, "
                        "aten::embedding: "),
              0u)
        << error.what();
  }
}

} // namespace
} // namespace chimera::runtime
