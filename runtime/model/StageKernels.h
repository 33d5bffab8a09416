//===- StageKernels.h - Stages' own device computations ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few computations of stages that do not come from a library. On the host,
// these computations are ordinary functions. For every other device there is an
// implementation of this interface, which gives the same bits as the functions.
//
// All pointers are to device memory. The functions of this interface must be
// called from a function that a queue of the device executes (Queue::launch),
// on the thread that calls that function. They put their operations on that
// queue.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_STAGEKERNELS_H
#define CHIMERA_RUNTIME_MODEL_STAGEKERNELS_H

#include "runtime/device/BFloat16.h"
#include "runtime/device/Bytes.h"
#include "runtime/model/AdamWFactors.h"

#include <cstdint>
#include <span>

namespace chimera::runtime {

/// A range of consecutive weights, which starts at the end of the previous
/// range. The first range starts at 0. Weight decay applies to all weights of a
/// range, or to none.
struct DecayRange {
  int64_t end;
  bool decays;
};

/// The key of dropout masks. If `step` is null, the key is `word`. Otherwise it
/// is splitMix64(word ^ *step), where `step` is memory of the device. So a
/// captured graph draws other numbers in each step.
struct DropoutKey {
  uint64_t word;
  const uint64_t *step = nullptr;
};

class StageKernels {
public:
  virtual ~StageKernels() = default;

  /// Computes a dropout mask like computeDropoutMask in Philox.h.
  virtual void computeDropoutMask(double dropped, DropoutKey key,
                                  uint64_t first, int64_t count,
                                  bool *kept) = 0;

  /// Dropout of `count` elements: sets result[i] to input[i] · kept[i] · scale,
  /// where `kept` is the mask of computeDropoutMask. `type` is float32, float64
  /// or bfloat16.
  virtual void drop(ElementType type, double dropped, DropoutKey key,
                    uint64_t first, int64_t count, const void *input,
                    double scale, void *result) = 0;

  /// Updates the weights of all ranges, and their two averages, in place with
  /// the formula in AdamWFactors.h. `factors` are for weights that decay; for
  /// the other weights, `keep` is replaced by 1. If `stops` is not null and
  /// `*stops` is not 0, nothing changes. If `scale` is not null, `*scale`
  /// replaces the factor `scale`.
  virtual void adamW(const AdamWFactors<float> &factors,
                     std::span<const DecayRange> ranges,
                     const float *gradientSum, float *weights, float *average,
                     float *averageOfSquares, const int32_t *stops = nullptr,
                     const double *scale = nullptr) = 0;
  virtual void adamW(const AdamWFactors<double> &factors,
                     std::span<const DecayRange> ranges,
                     const double *gradientSum, double *weights,
                     double *average, double *averageOfSquares,
                     const int32_t *stops = nullptr,
                     const double *scale = nullptr) = 0;
  virtual void adamW(const AdamWFactors<float> &factors,
                     std::span<const DecayRange> ranges,
                     const BFloat16 *gradientSum, BFloat16 *weights,
                     BFloat16 *average, BFloat16 *averageOfSquares,
                     const int32_t *stops = nullptr,
                     const double *scale = nullptr) = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_STAGEKERNELS_H
