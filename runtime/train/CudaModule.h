//===- CudaModule.h - Entry point of the module for CUDA --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CUDAMODULE_H
#define CHIMERA_RUNTIME_TRAIN_CUDAMODULE_H

#include "runtime/train/Accelerator.h"

namespace chimera::runtime {

inline constexpr const char *kCudaModule = "chimera_cuda.so";

/// The name of the module's only function, which makes an accelerator. The name
/// changes whenever the interface between chimera-run and the module changes.
/// The caller owns the result. The function throws like loadCuda.
inline constexpr const char *kMakeAccelerator = "chimeraMakeAccelerator7";
using MakeAccelerator = Accelerator *(const AcceleratorOptions &);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDAMODULE_H
