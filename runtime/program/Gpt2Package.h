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

#include "runtime/program/Gpt2Sizes.h"
#include "runtime/program/package_generated.h"

#include <memory>
#include <string>

namespace chimera::program {

/// The producer of these packages (package.fbs).
inline constexpr const char *kGpt2Producer = "chimera";

/// The package of a GPT-2 with activations of `type`. Returns null, with the
/// reason in `error` ("expected ..., got ..."), for a zero size, a size that no
/// model has, a width that is not divisible by the number of heads, a dropout
/// outside [0, 1), and sizes whose package checkPackage refuses.
std::unique_ptr<PackageT> gpt2Package(const Gpt2Sizes &sizes, DataType type,
                                      std::string &error);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_GPT2PACKAGE_H
