//===- TensorGraphs.h - Graphs of what LibTorch puts on GPUs ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H
#define CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H

#include "runtime/stage/Graphs.h"

namespace chimera::runtime {

/// Of the GPU that is current on the calling thread. Tensors that are made
/// while a graph is captured lie in memory that its set keeps.
std::shared_ptr<Graphs> makeTensorGraphs();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_TENSORGRAPHS_H
