//===- CapturedStage.cpp - A stage that runs as graphs --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/CapturedStage.h"

#include "runtime/program/Package.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The fixed buffers for operands and results of the actions on a micro-batch,
/// or on a part of it. Only one action at a time uses them.
struct FixedBuffers {
  Bytes input, labels, output, outputGradient, inputGradient;
};

enum Action { Forward, Backward, InputGradient, WeightGradient };

/// The graphs of all actions on one stash. At any time, a slot belongs to at
/// most one stash.
struct Slot {
  std::unique_ptr<GraphSet> set;
  std::array<std::unique_ptr<Graph>, 4> graphs = {}; ///< by action
  /// The addresses of the weights and of the gradient sum that the graphs use.
  const std::byte *weights = nullptr;
  std::byte *sum = nullptr;
  uint64_t uses = 0; ///< finished uses
  bool isTaken = false;

  bool runs() const { return uses == 0; }
  bool captures() const { return uses == 1; }
};

struct SlotStash final : Stash {
  SlotStash(FixedBuffers &buffers, Slot &slot) : buffers(buffers), slot(slot) {
    slot.isTaken = true;
  }
  ~SlotStash() override { slot.isTaken = false; }

  FixedBuffers &buffers;
  Slot &slot;
  /// The stash that the wrapped stage made. Null from the third use of the slot
  /// on, since the launch of a graph makes no Stash object.
  std::unique_ptr<Stash> own;
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
    Shape &shape = shapes[microBatch.parts];
    // A forward without a stash frees its slot when it returns. So one slot is
    // enough for all such forwards with the same weights.
    auto taken = std::make_unique<SlotStash>(
        shape.buffers, slotFor(shape.slots[{mode, weights.data()}]));
    Slot &slot = taken->slot;
    if (slot.runs()) {
      taken->own =
          stage->forward(microBatch, input, labels, weights, output, mode);
    } else {
      FixedBuffers &buffers = shape.buffers;
      copyIn(input, buffers.input);
      copyIn(labels, buffers.labels);
      expectSize(output.size(), buffers.output);
      if (slot.captures()) {
        slot.weights = weights.data();
        capture(slot, Forward, [&] {
          taken->own =
              stage->forward(microBatch, buffers.input, buffers.labels, weights,
                             buffers.output.first(output.size()), mode);
        });
      }
      launch(slot, Forward);
      copyOut(buffers.output, output);
    }
    if (mode != ForwardMode::Output)
      return taken;
    ++slot.uses;
    return nullptr;
  }

  void backward(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                Bytes outputGradient, ConstBytes weights, Bytes weightGradient,
                Bytes inputGradient, WgradMode mode) override {
    SlotStash &taken = open(stash, weights);
    Slot &slot = taken.slot;
    if (slot.runs()) {
      stage->backward(microBatch, std::move(taken.own), outputGradient, weights,
                      weightGradient, inputGradient, mode);
    } else {
      FixedBuffers &buffers = taken.buffers;
      copyIn(outputGradient, buffers.outputGradient);
      expectSize(inputGradient.size(), buffers.inputGradient);
      beginSum(slot, weightGradient, mode);
      if (slot.captures())
        capture(slot, Backward, [&] {
          stage->backward(microBatch, std::move(taken.own),
                          buffers.outputGradient, weights, weightGradient,
                          buffers.inputGradient, WgradMode::Add);
        });
      launch(slot, Backward);
      copyLossOut(buffers, outputGradient);
      copyOut(buffers.inputGradient, inputGradient);
    }
    ++slot.uses;
  }

  std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                       std::unique_ptr<Stash> stash,
                                       Bytes outputGradient, ConstBytes weights,
                                       Bytes inputGradient) override {
    SlotStash &taken = open(stash, weights);
    Slot &slot = taken.slot;
    if (slot.runs()) {
      taken.own = stage->inputGradient(microBatch, std::move(taken.own),
                                       outputGradient, weights, inputGradient);
      return stash;
    }
    FixedBuffers &buffers = taken.buffers;
    copyIn(outputGradient, buffers.outputGradient);
    expectSize(inputGradient.size(), buffers.inputGradient);
    if (slot.captures())
      capture(slot, InputGradient, [&] {
        taken.own = stage->inputGradient(microBatch, std::move(taken.own),
                                         buffers.outputGradient, weights,
                                         buffers.inputGradient);
      });
    launch(slot, InputGradient);
    copyLossOut(buffers, outputGradient);
    copyOut(buffers.inputGradient, inputGradient);
    return stash;
  }

  void weightGradient(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                      ConstBytes weights, Bytes weightGradient,
                      WgradMode mode) override {
    SlotStash &taken = open(stash, weights);
    Slot &slot = taken.slot;
    if (slot.runs()) {
      stage->weightGradient(microBatch, std::move(taken.own), weights,
                            weightGradient, mode);
    } else {
      beginSum(slot, weightGradient, mode);
      if (slot.captures())
        capture(slot, WeightGradient, [&] {
          stage->weightGradient(microBatch, std::move(taken.own), weights,
                                weightGradient, WgradMode::Add);
        });
      launch(slot, WeightGradient);
    }
    ++slot.uses;
  }

private:
  /// Buffers and slots for one number of parts per micro-batch.
  struct Shape {
    FixedBuffers buffers;
    /// The slots, by forward mode and address of the weights. A list has as
    /// many slots as the maximum number of stashes that were alive at the same
    /// time.
    std::map<std::pair<ForwardMode, const std::byte *>,
             std::vector<std::unique_ptr<Slot>>>
        slots;
  };

  Slot &slotFor(std::vector<std::unique_ptr<Slot>> &slots) {
    for (const std::unique_ptr<Slot> &slot : slots)
      if (!slot->isTaken)
        return *slot;
    slots.push_back(std::make_unique<Slot>());
    slots.back()->set = graphs->makeSet();
    return *slots.back();
  }

  static SlotStash &open(const std::unique_ptr<Stash> &stash,
                         ConstBytes weights) {
    auto *taken = dynamic_cast<SlotStash *>(stash.get());
    if (!taken)
      throw std::logic_error("expected a stash of this stage, got another");
    if (!taken->slot.runs() && taken->slot.weights != weights.data())
      throw std::logic_error("expected the weights of the forward");
    return *taken;
  }

  /// Makes the buffer `port` at least `bytes` large. Its size must be final
  /// before the first capture, because graphs keep its address.
  void expectSize(size_t bytes, Bytes &port) {
    if (port.size() < bytes)
      port = graphs->allocate(bytes);
  }
  void copyIn(ConstBytes from, Bytes &port) {
    expectSize(from.size(), port);
    if (!from.empty())
      graphs->copy(from, port);
  }
  void copyOut(Bytes port, Bytes to) {
    if (!to.empty())
      graphs->copy(port.first(to.size()), to);
  }

  /// On the last stage, which alone has labels, the backward adds to the loss.
  void copyLossOut(const FixedBuffers &buffers, Bytes loss) {
    if (!buffers.labels.empty())
      copyOut(buffers.outputGradient, loss);
  }

  void beginSum(Slot &slot, Bytes weightGradient, WgradMode mode) {
    if (slot.captures())
      slot.sum = weightGradient.data();
    else if (slot.sum != weightGradient.data())
      throw std::logic_error("expected the same gradient buffer in every step");
    if (mode == WgradMode::Overwrite)
      graphs->zero(weightGradient);
  }

  template <typename Calls>
  void capture(Slot &slot, Action action, const Calls &calls) try {
    slot.graphs[action] = slot.set->capture(calls);
  } catch (const std::exception &error) {
    constexpr const char *kNames[] = {"forward", "backward", "input gradient",
                                      "weight gradient"};
    throw std::runtime_error(std::string("cannot capture a graph of a ") +
                             kNames[action] + ": " + error.what() +
                             " (it runs without --cuda-graphs)");
  }

  static void launch(Slot &slot, Action action) {
    if (!slot.graphs[action])
      throw std::logic_error("expected an action with a captured graph");
    slot.graphs[action]->launch();
  }

  const std::shared_ptr<GraphFactory> graphs;
  // The order of members matters. Members are destroyed in reverse order: first
  // the graphs (in `shapes`), then the stage, then the factory.
  const std::unique_ptr<Stage> stage;
  std::map<uint32_t, Shape> shapes; // by number of parts
};
} // namespace

/// Whether some backwards of a stage are split, and others are not. The graphs
/// of a slot are for one of the two.
static bool mixesBackwards(const program::ProgramT &program) {
  std::set<std::pair<uint32_t, program::Opcode>> found;
  for (const auto &worker : program.workers)
    for (const program::Instruction &instruction : worker->instructions)
      found.emplace(instruction.stage(), instruction.opcode());
  return std::ranges::any_of(found, [&](const auto &each) {
    return each.second == program::Opcode::Backward &&
           found.contains({each.first, program::Opcode::InputGradient});
  });
}

std::string
chimera::runtime::graphsUnsupportedReason(const program::ProgramT &program) {
  if (program.updates != program::Updates::Flush)
    return "without a flush, weights are at several addresses";
  if (program.model && program::hasDropout(*program.model))
    return "dropout draws different random numbers for each micro-batch";
  if (mixesBackwards(program))
    return "some backwards of a stage are split, and others are not";
  return "";
}

std::unique_ptr<Stage>
chimera::runtime::wrapWithGraphs(std::unique_ptr<Stage> stage,
                                 std::shared_ptr<GraphFactory> graphs) {
  return std::make_unique<CapturedStage>(std::move(stage), std::move(graphs));
}
