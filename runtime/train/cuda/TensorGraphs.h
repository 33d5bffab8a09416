//===- TensorGraphs.h - Graphs of tensor operations -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H
#define CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H

#include "runtime/stage/GraphFactory.h"

namespace chimera::runtime {

/// Graphs for the current GPU of the calling thread. Tensors that are made
/// while a graph is captured are in memory that the graph's set keeps.
std::shared_ptr<GraphFactory> makeTensorGraphs();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H
