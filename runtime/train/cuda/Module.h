//===- Module.h - How the module for CUDA is entered ------------*- C++ -*-===//
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

/// The one function of the module. Its name changes with what passes through
/// it. The caller owns the result. Throws as loadCuda does.
inline constexpr const char *kMakeAccelerator = "chimeraMakeAccelerator4";
using MakeAccelerator = Accelerator *(const AcceleratorOptions &);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_MODULE_H
