//===- OnGpus.cpp - Fixture of tests with runs on GPUs --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/train/OnGpus.h"

#include "runtime/model/ExactStage.h"
#include "runtime/proof/ProvenFile.h"
#include "runtime/train/RunOnHost.h"
#include "test/runtime/train/Failures.h"

#include <gtest/gtest.h>

namespace chimera::runtime::test {

using namespace std::chrono_literals;

std::unique_ptr<Accelerator> OnGpus::accelerator() {
  return makeCudaAccelerator({.stagesOnHost = true}, {});
}

std::unique_ptr<Accelerator> OnGpus::workingOnDevice() {
  return makeCudaAccelerator({}, {.streamGuard = [](cudaStream_t stream) {
                               (void)cudaStreamSynchronize(stream);
                               return nullptr;
                             }});
}

program::ProgramT OnGpus::sample(const program::SampleOptions &options) {
  program::ProgramT program = program::samplePipeline(options);
  std::string error;
  EXPECT_TRUE(program::proveForStreamPerDevice(program, "sample", error))
      << error;
  return program;
}

void OnGpus::expectFailureIsReported() {
  const program::ProgramT program = sample({.workers = 3});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  Data data([](MicroBatch microBatch) {
    if (microBatch.step == 2 && microBatch.index == 2)
      throw std::runtime_error("the disk is gone");
  });
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 5;
  run.accelerator = gpus.get();
  const std::string report = failureOf(run);
  expectContains(report, "failed: the disk is gone");
  // Either a line ends with the step, or the number of an instruction follows.
  EXPECT_TRUE((report + "\n").find(" of step 3\n") != std::string::npos ||
              report.find(": step 3, instruction ") != std::string::npos)
      << report;
}

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
}

Outcome outcomeOf(const program::ProgramT &program, Accelerator *accelerator) {
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 4;
  run.timeout = 30s;
  run.gatherWeights = run.gatherGradients = run.checkReplicas = true;
  run.accelerator = accelerator;
  Outcome outcome;
  run.onStep = [&](const StepEvent &event) {
    outcome.losses.push_back(event.loss);
  };
  run.onResult = [&](const RunResult &result) {
    outcome.weights = result.weights;
    outcome.gradients = result.gradients;
    outcome.ranks = result.ranks;
  };
  runInProcess(run);
  return outcome;
}

void Data::load(program::ValueKind kind, MicroBatch microBatch, Bytes output) {
  before(microBatch);
  SyntheticData(1).load(kind, microBatch, output);
}

} // namespace chimera::runtime::test
