//===- Dataset.h - The samples of a run -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Samples in files. The first samples are the training part, and the last ones
// may be held out of training.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_DATASET_H
#define CHIMERA_RUNTIME_DATA_DATASET_H

#include "runtime/data/DataSource.h"
#include "runtime/data/SampleOrder.h"

#include <memory>
#include <string>

namespace chimera::runtime {

/// As a data source, it gives the samples of the training part.
class Dataset : public DataSource {
public:
  /// Throws std::bad_optional_access if there is no training part. So does
  /// `load`.
  virtual const SampleOrder &sampleOrder() const = 0;
  /// A digest of the samples and of the size of the training part. It covers
  /// the whole description of the samples, but not all of the samples.
  virtual uint64_t digest() const = 0;
  /// Checks part `part` of `parts` equal parts of all samples, with up to
  /// `threads` threads. Returns an error message about the first value that the
  /// model cannot take, such as a token outside its vocabulary, or an empty
  /// text. Throws std::runtime_error if samples cannot be read.
  virtual std::string check(uint32_t threads, uint32_t part = 0,
                            uint32_t parts = 1) const = 0;
  /// The number of samples that are held out.
  virtual uint64_t heldOutCount() const = 0;
  /// A data source of `samples` held-out samples, for evaluations. Sample `row`
  /// of micro-batch `index` of step `pass` is number (pass · M + index) ·
  /// micro-batch size + row, where M is the number of micro-batches in a step
  /// of all copies. Samples after the last number repeat it. This object must
  /// outlive the result. Throws std::runtime_error if too little is held out.
  virtual std::unique_ptr<DataSource> heldOut(uint64_t samples) const = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_DATASET_H
