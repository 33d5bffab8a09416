//===- Module.h - Entry point of the module for CUDA ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CUDA_MODULE_H
#define CHIMERA_RUNTIME_TRAIN_CUDA_MODULE_H

#include "runtime/train/Accelerator.h"

namespace chimera::runtime {

inline constexpr const char *kCudaModule = "chimera_cuda.so";

/// The only function of the module. Its name changes whenever its interface
/// changes. The caller owns the result. Throws like loadCuda.
inline constexpr const char *kMakeAccelerator = "chimeraMakeAccelerator4";
using MakeAccelerator = Accelerator *(const AcceleratorOptions &);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_MODULE_H
