//===- Predictions.h - The labels that a model predicts ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The accuracy of a model is the share of labels that it predicts right. Its
// prediction of a label is the class with the largest logit.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_PREDICTIONS_H
#define CHIMERA_RUNTIME_PROGRAM_PREDICTIONS_H

#include "runtime/program/program_generated.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace chimera::program {

/// The index in labelFields(model) of the field that the model predicts: its
/// only field of int64 numbers, if the model has logits. None if it has no
/// accuracy.
std::optional<size_t> predictedField(const PackageT &model);

/// The label that the model's loss ignores (ignore_index of PyTorch's losses):
/// often -100, or 255 in segmentation. None if the loss has no such label.
std::optional<int64_t> ignoredLabel(const PackageT &model);

/// The number of labels in the predicted field that count: those of at least 0,
/// except the ignored label. `labels` are the labels of `samples` samples, as
/// the last stage gets them. Requires a predicted field.
uint64_t countLabels(const PackageT &model, uint32_t samples,
                     std::span<const std::byte> labels);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PREDICTIONS_H
