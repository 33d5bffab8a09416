//===- SampleOrder.h - The order of training samples ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order in which a run trains on its samples. In each epoch, the order is
// another permutation of all samples, so no sample comes twice before all have
// come once. The order depends only on the seed, the number of samples and the
// size of a mini-batch. It does not depend on the rank, the schedule or the
// size of a micro-batch. A run can start in any step.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_SAMPLEORDER_H
#define CHIMERA_RUNTIME_DATA_SAMPLEORDER_H

#include <cstdint>

namespace chimera::runtime {

/// The samples that are left at the end of an epoch if they are fewer than a
/// mini-batch. `Drop`: the epoch ends without them, as with PyTorch's
/// DataLoader(shuffle=True, drop_last=True). They are other samples in each
/// epoch. `Fill`: the mini-batch is filled up with the first samples of the
/// next epoch, so each sample is used in each epoch.
enum class LastBatch { Drop, Fill };

/// The image of `number` under a pseudo-random permutation of the numbers
/// [0, count). Each `key` selects a permutation. Needs no memory. Throws
/// std::invalid_argument unless number < count.
uint64_t permute(uint64_t number, uint64_t count, uint64_t key);

/// A sample, numbered from 0, in an epoch.
struct SampleOfEpoch {
  uint64_t epoch, sample;
};

/// The order of `samples` samples in mini-batches of `batch` samples.
class SampleOrder {
public:
  /// Throws std::runtime_error if there are no samples, or with `Drop` if a
  /// mini-batch has more samples than there are. Throws std::invalid_argument
  /// if a mini-batch has no samples.
  SampleOrder(uint64_t samples, uint64_t batch, LastBatch last, uint64_t seed);

  /// The sample at position `position` of the mini-batch of a step. Throws
  /// std::invalid_argument unless position < batch.
  SampleOfEpoch sampleAt(uint64_t step, uint64_t position) const;

  uint64_t samples() const { return count; }
  /// The steps of a run over `epochs` epochs. With `Fill`, the last mini-batch
  /// may contain samples of one more epoch. Returns UINT64_MAX if the number is
  /// larger than that.
  uint64_t stepsOf(uint64_t epochs) const;

private:
  uint64_t count, batch;
  LastBatch last;
  uint64_t seed;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_SAMPLEORDER_H
