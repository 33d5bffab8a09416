//===- Gpt2Package.h - GPT-2 as a package -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes packages of GPT-2 (pre-norm, learned positions) of any size, as
// tools/export makes them of PyTorch models.
//
// Layer 0 is the token and position embedding, layers 1..L are the transformer
// blocks, layer L+1 is the final norm and the head. In a tied model, the matrix
// of the head is the token embedding. The names of layer k's parameters begin
// with "layers.k.". The input is `input_ids` [samples, context], the label
// `labels` [samples, context], and the loss their mean cross-entropy.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_GPT2PACKAGE_H
#define CHIMERA_RUNTIME_PROGRAM_GPT2PACKAGE_H

#include "runtime/program/program_generated.h"

#include <string>

namespace chimera::program {

/// The architecture of a model that buildGpt2 completes.
inline constexpr char kGpt2[] = "gpt2";

/// Gives a model its package: that of a GPT-2 of the model's sizes, with
/// activations of `type`. Returns an error text ("expected ..., got ..."), or
/// an empty text. Refuses a zero size, a size that no model has, a width that
/// is not divisible by the number of heads, a dropout outside [0, 1), and sizes
/// whose package checkPackage refuses.
std::string buildGpt2(ModelT &model, DataType type);

/// Checks that buildGpt2 makes the model's package from its sizes. Returns an
/// error text, or an empty text. Requires a package.
std::string checkGpt2(const ModelT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_GPT2PACKAGE_H
