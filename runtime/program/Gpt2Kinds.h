//===- Gpt2Kinds.h - The layers of GPT-2 as graphs --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The three kinds of layers of a GPT-2 (Gpt2Package.h): parameters, forward and
// backward.
//
// If activations are bfloat16, sums are float32: in the statistics of norms, in
// the gradients of norms and biases, and from the logits to the loss.
//
// Operations are those of matrix products and attention (two for each
// multiply-add) and, for the embedding, its additions.
//
// All functions require sizes that gpt2Package accepts.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_GPT2KINDS_H
#define CHIMERA_RUNTIME_PROGRAM_GPT2KINDS_H

#include "runtime/program/Gpt2Sizes.h"
#include "runtime/program/package_generated.h"

#include <memory>

namespace chimera::program {

std::unique_ptr<LayerKindT> gpt2Embedding(const Gpt2Sizes &sizes,
                                          DataType type);
std::unique_ptr<LayerKindT> gpt2Block(const Gpt2Sizes &sizes, DataType type);
std::unique_ptr<LayerKindT> gpt2Head(const Gpt2Sizes &sizes, DataType type);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_GPT2KINDS_H
