//===- ArrayData.h - Training samples from arrays ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The data source for training on arrays (ArrayFiles.h), for models with any
// inputs and labels. SampleOrder says which step trains on which sample.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_ARRAYDATA_H
#define CHIMERA_RUNTIME_DATA_ARRAYDATA_H

#include "runtime/data/ArrayFiles.h"
#include "runtime/data/Dataset.h"

#include <functional>
#include <optional>

namespace chimera::runtime {

class ArrayData : public Dataset {
public:
  /// Opens the arrays of all inputs and labels of the program's model, by their
  /// names in the model. The last floor(samples * holdOut) samples are held
  /// out; if holdOut is 1, there is no training part. Throws std::runtime_error
  /// if openArrays or SampleOrder does. Throws std::invalid_argument if holdOut
  /// is not in [0, 1], or if the program has no model.
  ArrayData(const std::vector<ArrayFileName> &files,
            const program::ProgramT &program, double holdOut,
            LastBatch last = LastBatch::Drop);

  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override;

  const SampleOrder &sampleOrder() const override { return order.value(); }
  uint64_t digest() const override;

  /// Checks the tokens of a language model, and the labels that a model
  /// predicts (Predictions.h). All labels of the built-in GPT-2 must count,
  /// because its loss is a mean of the labels of a micro-batch.
  std::string check(uint32_t threads, uint32_t part = 0,
                    uint32_t parts = 1) const override;

  uint64_t heldOutCount() const override { return held; }
  /// Number n of the `samples` held-out samples is sample floor(n · held out /
  /// samples) of the held-out part. So if the part has fewer samples than that,
  /// it repeats all of them about equally often. If it has none, throws
  /// std::runtime_error.
  std::unique_ptr<DataSource> heldOut(uint64_t samples) const override;

private:
  class HeldOut;

  /// Fills the rows of `output`. `sampleOf` is a function from a position
  /// within all micro-batches of a step to a sample's number.
  void fill(program::ValueKind kind, MicroBatch microBatch, Bytes output,
            const std::function<uint64_t(uint64_t)> &sampleOf) const;

  /// The array of an input or of a label. A field without data (the scales of
  /// loss terms) has none.
  struct Column {
    program::Field field;
    std::optional<ArrayField> array = {};
    /// The values are int64 numbers below `bound`. They are 0 or more, unless
    /// the column has labels: a label below 0 does not count. If there is no
    /// bound, the column may have any values.
    std::optional<int64_t> bound = {};
    /// A label that does not count, and need not be below `bound`.
    std::optional<int64_t> ignored = {};
    /// Whether labels that do not count are refused.
    bool allMustCount = false;
  };
  std::string checkColumn(const Column &column, bool areLabels,
                          uint32_t threads, uint32_t part,
                          uint32_t parts) const;
  std::vector<Column> inputs, labels;
  std::optional<SampleOrder> order;
  uint64_t training, held; ///< numbers of samples
  uint64_t microBatches;   ///< in a step, of all copies
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_ARRAYDATA_H
