//===- ExactTraining.h - Training of exact stages on one device -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_TRAIN_EXACTTRAINING_H
#define CHIMERA_TEST_RUNTIME_TRAIN_EXACTTRAINING_H

#include "runtime/model/ExactStage.h"
#include "runtime/train/Sequential.h"

namespace chimera::runtime::test {

/// Trains a program for `steps` steps on one device, with exact stages
/// (ExactStage.h).
inline SequentialResult sequential(const program::ProgramT &program,
                                   uint64_t steps, DataSource &data) {
  std::vector<std::unique_ptr<Stage>> stages;
  for (uint32_t s = 0; s < program.stages.size(); ++s)
    stages.push_back(makeExactStage(program, s));
  return trainSequentially(program, stages, data, steps);
}
/// Trains with the synthetic data of the program's seed.
inline SequentialResult sequential(const program::ProgramT &program,
                                   uint64_t steps) {
  SyntheticData data(program.seed);
  return sequential(program, steps, data);
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_TRAIN_EXACTTRAINING_H
