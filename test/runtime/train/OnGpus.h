//===- OnGpus.h - Fixture of tests with runs on GPUs ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_TRAIN_ONGPUS_H
#define CHIMERA_TEST_RUNTIME_TRAIN_ONGPUS_H

#include "runtime/train/TrainingRun.h"
#include "runtime/train/cuda/Accelerator.h"
#include "test/runtime/cuda/CleanGpus.h"
#include "test/runtime/program/SamplePrograms.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace chimera::runtime::test {

/// A test on the software GPU.
class OnGpus : public CleanGpus {
protected:
  /// An accelerator for stages that compute on the host.
  static std::unique_ptr<Accelerator> accelerator();
  /// An accelerator whose stages work in device memory. An action waits for the
  /// earlier operations of its stream.
  static std::unique_ptr<Accelerator> workingOnDevice();
  /// A sample that is proven for the message model StreamPerDevice, which GPUs
  /// need.
  static program::ProgramT sample(const program::SampleOptions &options);
  /// Runs three ranks, one of which fails in step 3. Expects that the run ends
  /// and that its report names the error and the step.
  static void expectFailureIsReported();
};

void expectContains(const std::string &text, const std::string &part);

/// The results of a run, and how its ranks used their devices.
struct Outcome {
  std::vector<std::byte> weights, gradients;
  std::vector<std::optional<Loss>> losses;
  std::vector<RankUse> ranks;
};

/// The outcome of four steps of exact stages, on the host if `accelerator` is
/// null.
Outcome outcomeOf(const program::ProgramT &program, Accelerator *accelerator);

/// Synthetic data. `load` first calls a function of the test.
class Data final : public DataSource {
public:
  explicit Data(std::function<void(MicroBatch)> before)
      : before(std::move(before)) {}
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override;

private:
  std::function<void(MicroBatch)> before;
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_TRAIN_ONGPUS_H
