//===- TensorGraphs.h - Graphs of tensor operations -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H
#define CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H

#include "runtime/model/GraphFactory.h"

namespace chimera::runtime {

/// A factory of graphs for the current GPU of the calling thread. Tensors that
/// are made during a capture are in memory of the factory's pool.
std::shared_ptr<GraphFactory> makeTensorGraphs();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H
