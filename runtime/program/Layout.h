//===- Layout.h - What a model's layers hold and cost -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that says which tensors each layer of a model has, in which
// order they lie in a stage's flat weights, and what a micro-batch costs there.
// The compiler partitions and sizes buffers with it; the runtime binds its
// tensors to it.
//
// Layers of "gpt2" (pre-norm, learned positions, untied head): 0 is the token
// and position embedding, 1..L the transformer blocks, L+1 the final norm and
// the head.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_LAYOUT_H
#define CHIMERA_RUNTIME_PROGRAM_LAYOUT_H

#include "runtime/program/Program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace chimera::program {

/// How a parameter starts: drawn from N(0, deviation²), or constant.
struct Parameter {
  enum class Start { Normal, Zeros, Ones };
  std::string name;           ///< unique inside its layer, "attention.weight"
  std::vector<int64_t> shape; ///< row-major
  Start start;
  double deviation = 0;

  int64_t elements() const;
};

/// What one layer costs for one micro-batch.
struct LayerCost {
  int64_t forwardFlops;
  int64_t backwardFlops;
  int64_t stashBytes;
};

/// Empty if `model` can be trained, else what is wrong with it ("expected …,
/// got …"): an unknown architecture, a zero size, a width that the heads do not
/// divide, a dropout outside [0, 1).
std::string checkModel(const ModelT &model);

int64_t bytesOf(DataType type);

/// Layers of the model, embedding and head included.
uint32_t layerCount(const ModelT &model);

/// The parameters of `layer` in the order in which they lie in memory. A
/// stage's weights are those of its layers, one after another, without padding.
/// Requires a checked model and layer < layerCount(model).
std::vector<Parameter> layerParameters(const ModelT &model, uint32_t layer);

/// Elements of the weights of layers [first, first + count).
int64_t parameterCount(const ModelT &model, uint32_t first, uint32_t count);

/// Costs of `layer` for one micro-batch of `microBatchSize` sequences. The
/// stash is what the runtime keeps from the forward to the backward besides the
/// weights; a test holds it against what is measured.
LayerCost layerCost(const ModelT &model, DataType type, uint32_t microBatchSize,
                    uint32_t layer);

/// Bytes of one micro-batch's token (or label) numbers: int64 each.
int64_t tokenBytes(const ModelT &model, uint32_t microBatchSize);

/// Bytes of the activation between two layers: [micro-batch, context, width].
int64_t boundaryBytes(const ModelT &model, DataType type,
                      uint32_t microBatchSize);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_LAYOUT_H
