//===- SamplePackages.h - Exported models made by hand ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPACKAGES_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPACKAGES_H

#include "runtime/program/Package.h"
#include "runtime/program/Program.h"

#include <utility>

namespace chimera::program {

/// The shape of a tensor with a row for each sample. `shape` is the shape of a
/// row.
std::unique_ptr<TensorShapeT> perSample(TensorType type,
                                        const std::vector<int64_t> &shape);

/// Replaces `tensors` by tensors with a row for each sample. A field is the
/// type and the shape of a row.
void setFields(
    std::vector<std::unique_ptr<TensorShapeT>> &tensors,
    const std::vector<std::pair<TensorType, std::vector<int64_t>>> &fields);

/// A package of three layers in float64. A sample has 2 tokens.
///
///   layer 0   x = embedding of the tokens        weight [5, 3]
///   layer 1   y = x * scale                      scale [3]
///   layer 2   loss = the sum of y * factors      factors [3], labels unused
///
/// Layers 1 and 2 save their inputs. Their input gradients are products with
/// their parameters.
std::unique_ptr<PackageT> samplePackage();

/// samplePackage() with a weight of the loss: the weight of a micro-batch is
/// the sum of its labels.
std::unique_ptr<PackageT> weighedPackage();

/// samplePackage() with the weights of two loss terms: the number of labels,
/// and the sum of the labels. The last layer gets a scale for each term
/// (loss_scales) but does not use it.
std::unique_ptr<PackageT> packageWithTwoLossTerms();

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPACKAGES_H
