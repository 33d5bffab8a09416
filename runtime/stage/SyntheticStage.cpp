//===- SyntheticStage.cpp - Stages that only take time --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/SyntheticStage.h"

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

  // Sums of zeros; 64-bit words are summed whatever their number of bytes.
  ElementType weightType() const override { return ElementType::UInt64; }
  ElementType lossType() const override { return ElementType::UInt64; }

  void initialize(Bytes weights, Bytes optimizerState) override {
    zero(weights);
    zero(optimizerState);
  }

  std::unique_ptr<Stash> forward(MicroBatch, ConstBytes, ConstBytes, ConstBytes,
                                 Bytes output) override {
    spend(costs.forward());
    if (last)
      zero(output);
    return nullptr;
  }

  void backward(MicroBatch, std::unique_ptr<Stash>, ConstBytes, ConstBytes,
                Bytes, Bytes) override {
    spend(costs.backward());
  }

  std::unique_ptr<Stash> inputGradient(MicroBatch, std::unique_ptr<Stash>,
                                       ConstBytes, ConstBytes, Bytes) override {
    spend(costs.input_gradient());
    return nullptr;
  }

  void weightGradient(MicroBatch, std::unique_ptr<Stash>, ConstBytes,
                      Bytes) override {
    spend(costs.weight_gradient());
  }

  void optimizerStep(uint64_t, double, ConstBytes, Bytes, Bytes) override {}

private:
  static void zero(Bytes bytes) {
    if (!bytes.empty())
      std::memset(bytes.data(), 0, bytes.size());
  }

  void spend(int64_t cost) const {
    auto duration = std::chrono::nanoseconds(
        std::llround(static_cast<double>(cost) * perUnit));
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
