//===- StageKernels.h - The stages' own computations on a GPU ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CUDA_STAGEKERNELS_H
#define CHIMERA_RUNTIME_MODEL_CUDA_STAGEKERNELS_H

#include "runtime/model/StageKernels.h"

namespace chimera::runtime {

/// The kernels of the CUDA device whose queue is executing the calling function
/// (Queue::launch).
StageKernels &cudaStageKernels();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CUDA_STAGEKERNELS_H
