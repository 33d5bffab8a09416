//===- SyntheticStage.cpp - Stages that only sleep ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/SyntheticStage.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;

namespace {
class SyntheticStage final : public Stage {
public:
  SyntheticStage(const program::Stage &costs, bool last, double perUnit)
      : costs(costs), last(last), perUnit(perUnit) {}

  // All values are zero. The type is UInt64, because buffers of any size can be
  // summed as 64-bit words.
  ElementType weightType() const override { return ElementType::UInt64; }
  ElementType lossType() const override { return ElementType::UInt64; }

  void initialize(Bytes weights, Bytes optimizerState) override {
    zero(weights);
    zero(optimizerState);
  }

  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes, ConstBytes,
                                 ConstBytes, Bytes output,
                                 ForwardMode mode) override {
    bool again = mode == ForwardMode::Stash;
    spend(again ? costs.recompute() : costs.forward(), microBatch);
    if (last)
      zero(output);
    return nullptr;
  }

  void backward(MicroBatch microBatch, std::unique_ptr<Stash>, Bytes,
                ConstBytes, Bytes weightGradient, Bytes,
                WgradMode mode) override {
    begin(weightGradient, mode);
    spend(costs.backward(), microBatch);
  }

  std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                       std::unique_ptr<Stash>, Bytes,
                                       ConstBytes, Bytes) override {
    spend(costs.input_gradient(), microBatch);
    return nullptr;
  }

  void weightGradient(MicroBatch microBatch, std::unique_ptr<Stash>, ConstBytes,
                      Bytes weightGradient, WgradMode mode) override {
    begin(weightGradient, mode);
    spend(costs.weight_gradient(), microBatch);
  }

  void squaredNorm(ConstBytes, Bytes squaredNorm) override {
    zero(squaredNorm);
  }

  void optimizerStep(const Update &, ConstBytes, Bytes, Bytes, Bytes,
                     ConstBytes) override {
    spend(costs.update(), {});
  }

private:
  static void zero(Bytes bytes) {
    if (!bytes.empty())
      std::memset(bytes.data(), 0, bytes.size());
  }

  static void begin(Bytes weightGradient, WgradMode mode) {
    if (mode == WgradMode::Overwrite)
      zero(weightGradient);
  }

  /// Sleeps for an action that costs `cost` units. For a part of a micro-batch,
  /// sleeps for the part's share of the units, as the scheduler assumes.
  void spend(int64_t cost, MicroBatch microBatch) const {
    // cost * k / parts, without overflow.
    auto until = [&](int64_t k) {
      return cost / microBatch.parts * k +
             cost % microBatch.parts * k / microBatch.parts;
    };
    int64_t share =
        until(microBatch.part + int64_t(1)) - until(microBatch.part);
    // A limit of about 285 years. A file may state a longer time, which would
    // not fit into 64 bits.
    constexpr double kMost = 9e18;
    auto duration = std::chrono::nanoseconds(
        std::llround(std::min(static_cast<double>(share) * perUnit, kMost)));
    if (duration.count() > 0)
      std::this_thread::sleep_for(duration);
  }

  program::Stage costs;
  bool last;
  double perUnit;
};
} // namespace

StageFactory chimera::runtime::makeSyntheticStages(double nanosecondsPerUnit) {
  return [=](const program::ProgramT &program, uint32_t stage) {
    return std::make_unique<SyntheticStage>(program.stages.at(stage),
                                            stage + 1 == program.stages.size(),
                                            nanosecondsPerUnit);
  };
}
