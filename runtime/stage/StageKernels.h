//===- StageKernels.h - What stages need beside a library -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Few computations of stages are our own. On the host they are functions; a
// device that is not the host has them here. Both give the same bits.
//
// Memory is the device's. A call is made by the work that a queue of the device
// executes (Queue::launch), on the thread that calls it, and puts its operation
// on that queue.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_STAGEKERNELS_H
#define CHIMERA_RUNTIME_STAGE_STAGEKERNELS_H

#include "runtime/stage/AdamWFactors.h"

#include <cstdint>
#include <span>

namespace chimera::runtime {

/// Elements behind those of the run before, up to `end`, whose weights decay or
/// do not.
struct DecayRun {
  int64_t end;
  bool decays;
};

class StageKernels {
public:
  virtual ~StageKernels() = default;

  /// As Philox.h says.
  virtual void keepElements(double dropped, uint64_t key, uint64_t first,
                            int64_t count, bool *kept) = 0;

  /// Updates the weights of all runs and their two averages in place, as
  /// AdamWFactors.h says. `factors` are those of weights that decay. Changes
  /// nothing if there is a flag `halted` (Stage::optimizerStep) and it is set.
  virtual void adamW(const AdamWFactors<float> &factors,
                     std::span<const DecayRun> runs, const float *gradientSum,
                     float *weights, float *average, float *averageOfSquares,
                     const int32_t *halted = nullptr) = 0;
  virtual void adamW(const AdamWFactors<double> &factors,
                     std::span<const DecayRun> runs, const double *gradientSum,
                     double *weights, double *average, double *averageOfSquares,
                     const int32_t *halted = nullptr) = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_STAGEKERNELS_H
