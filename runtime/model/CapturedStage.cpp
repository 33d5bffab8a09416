//===- CapturedStage.cpp - A stage that runs as graphs --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/CapturedStage.h"

#include "runtime/program/Package.h"

#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

using namespace chimera;
using namespace chimera::runtime;

namespace {
enum Action {
  Forward,
  ForwardWithoutStash,
  Recompute,
  Backward,
  InputGradient,
  WeightGradient
};
constexpr const char *kNames[] = {"forward",        "forward without a stash",
                                  "recompute",      "backward",
                                  "input gradient", "weight gradient"};

Action actionOf(ForwardMode mode) {
  return mode == ForwardMode::Both     ? Forward
         : mode == ForwardMode::Output ? ForwardWithoutStash
                                       : Recompute;
}

/// An action on a micro-batch or on a part of it, and its graph.
struct CapturedAction {
  Action kind;
  bool hasRun = false; ///< without a graph
  std::unique_ptr<Graph> graph;
  /// The addresses of the operands and results on which the graph works.
  std::vector<const std::byte *> operands;
  uint64_t place = 0; ///< among all graphs of the stage, in a step
};

[[noreturn]] void refuseChange() {
  throw std::logic_error("expected the same actions in every step, in the same "
                         "order");
}

struct CapturedStash final : Stash {
  /// The stash that the wrapped stage made. Null if a launch of a graph that
  /// was captured earlier made the stash.
  std::unique_ptr<Stash> own;
  bool isOfGraph = false; ///< whether a graph made the stash
};

class CapturedStage final : public Stage {
public:
  CapturedStage(std::unique_ptr<Stage> stage,
                std::shared_ptr<GraphFactory> graphs)
      : graphs(std::move(graphs)), stage(std::move(stage)) {}

  bool needsLossWeights() const override { return stage->needsLossWeights(); }
  ElementType weightType() const override { return stage->weightType(); }
  ElementType lossType() const override { return stage->lossType(); }
  bool needsErrorFlag() const override { return stage->needsErrorFlag(); }
  void setErrorFlag(Bytes flag) override { stage->setErrorFlag(flag); }
  std::string errorMessage(int32_t flag) const override {
    return stage->errorMessage(flag);
  }
  void initialize(Bytes weights, Bytes optimizerState) override {
    stage->initialize(weights, optimizerState);
  }
  void squaredNorm(ConstBytes gradientSum, Bytes squaredNorm) override {
    stage->squaredNorm(gradientSum, squaredNorm);
  }
  void optimizerStep(const Update &update, ConstBytes gradientSum,
                     Bytes weights, Bytes optimizerState, Bytes halted,
                     ConstBytes squaredNorm) override {
    stage->optimizerStep(update, gradientSum, weights, optimizerState, halted,
                         squaredNorm);
  }

  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    if (!trains(mode)) // rare
      return stage->forward(microBatch, input, labels, weights, output, mode);
    CapturedAction &action = actionFor(actionOf(mode), microBatch);
    auto stash = std::make_unique<CapturedStash>();
    stash->isOfGraph = action.hasRun;
    run(action, {input, labels, weights, output}, [&] {
      stash->own =
          stage->forward(microBatch, input, labels, weights, output, mode);
    });
    return makesStash(mode) ? std::move(stash) : nullptr;
  }

  void backward(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                Bytes outputGradient, ConstBytes weights, Bytes weightGradient,
                Bytes inputGradient, WgradMode mode) override {
    CapturedAction &action = actionFor(Backward, microBatch, mode);
    CapturedStash &taken = open(stash, action);
    run(action, {outputGradient, weights, weightGradient, inputGradient}, [&] {
      stage->backward(microBatch, std::move(taken.own), outputGradient, weights,
                      weightGradient, inputGradient, mode);
    });
  }

  std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                       std::unique_ptr<Stash> stash,
                                       Bytes outputGradient, ConstBytes weights,
                                       Bytes inputGradient) override {
    CapturedAction &action = actionFor(InputGradient, microBatch);
    CapturedStash &taken = open(stash, action);
    run(action, {outputGradient, weights, inputGradient}, [&] {
      taken.own = stage->inputGradient(microBatch, std::move(taken.own),
                                       outputGradient, weights, inputGradient);
    });
    return stash;
  }

  void weightGradient(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                      ConstBytes weights, Bytes weightGradient,
                      WgradMode mode) override {
    CapturedAction &action = actionFor(WeightGradient, microBatch, mode);
    CapturedStash &taken = open(stash, action);
    run(action, {weights, weightGradient}, [&] {
      stage->weightGradient(microBatch, std::move(taken.own), weights,
                            weightGradient, mode);
    });
  }

private:
  /// The action on this micro-batch. A step has each action at most once.
  /// Sets the step on which its random numbers depend.
  CapturedAction &actionFor(Action kind, MicroBatch microBatch,
                            WgradMode mode = WgradMode::Add) {
    if (!step)
      stage->setStepMemory(graphs->number());
    if (step != microBatch.step)
      graphs->setNumber(*(step = microBatch.step));
    CapturedAction &action = actions[{kind, microBatch.index, microBatch.part,
                                      microBatch.parts, mode}];
    action.kind = kind;
    return action;
  }

  /// The stash for `action`. Throws std::logic_error unless a graph made the
  /// stash exactly if `action` is a graph now.
  static CapturedStash &open(const std::unique_ptr<Stash> &stash,
                             const CapturedAction &action) {
    auto *taken = dynamic_cast<CapturedStash *>(stash.get());
    if (!taken)
      throw std::logic_error("expected a stash of this stage, got another");
    if (taken->isOfGraph != action.hasRun)
      refuseChange();
    return *taken;
  }

  /// Runs an action, which is what `calls` does with `operands`.
  template <typename Calls>
  void run(CapturedAction &action, std::initializer_list<ConstBytes> operands,
           const Calls &calls) {
    if (!action.hasRun) {
      action.hasRun = true;
      calls();
      return;
    }
    std::vector<const std::byte *> addresses;
    for (ConstBytes operand : operands)
      addresses.push_back(operand.data());
    if (!action.graph) {
      action.operands = addresses;
      action.graph = capture(action.kind, calls);
      action.place = next = captured++;
    } else if (action.operands != addresses) {
      throw std::logic_error("expected operands at the same addresses in every "
                             "step");
    }
    if (action.place != next)
      refuseChange();
    action.graph->launch();
    next = (next + 1) % captured;
  }

  template <typename Calls>
  std::unique_ptr<Graph> capture(Action kind, const Calls &calls) try {
    return graphs->capture(calls);
  } catch (const std::exception &error) {
    throw std::runtime_error(std::string("cannot capture a graph of a ") +
                             kNames[kind] + ": " + error.what() +
                             " (it runs without --cuda-graphs)");
  }

  const std::shared_ptr<GraphFactory> graphs;
  // The order of members matters. Members are destroyed in reverse order: first
  // the graphs (in `actions`), then the stage, then the factory.
  const std::unique_ptr<Stage> stage;
  /// By kind of action, micro-batch, part, number of parts, and mode.
  std::map<std::tuple<Action, uint64_t, uint32_t, uint32_t, WgradMode>,
           CapturedAction>
      actions;
  std::optional<uint64_t> step; ///< that `graphs` has as its number
  uint64_t captured = 0;        ///< number of graphs
  uint64_t next = 0;            ///< place of the graph to launch next
};
} // namespace

std::string
chimera::runtime::graphsUnsupportedReason(const program::ProgramT &program) {
  if (program.updates != program::Updates::Flush)
    return "without a flush, weights are at several addresses";
  if (program.model && program::attentionDrops(*program.model))
    return "an attention has dropout, and a graph cannot set the random "
           "numbers of LibTorch's kernel (other dropout is possible)";
  return "";
}

std::unique_ptr<Stage>
chimera::runtime::wrapWithGraphs(std::unique_ptr<Stage> stage,
                                 std::shared_ptr<GraphFactory> graphs) {
  return std::make_unique<CapturedStage>(std::move(stage), std::move(graphs));
}
