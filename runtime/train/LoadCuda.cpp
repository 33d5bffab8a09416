//===- LoadCuda.cpp - Loading the module for CUDA and NCCL ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/LoadModule.h"
#include "runtime/train/Accelerator.h"
#include "runtime/train/CudaModule.h"

using namespace chimera::runtime;

std::unique_ptr<Accelerator>
chimera::runtime::loadCuda(const AcceleratorOptions &options) {
  auto *make = reinterpret_cast<MakeAccelerator *>(loadModule(
      {kCudaModule, kMakeAccelerator},
      {.missing = "this chimera was built without CUDA",
       .needs = "an NVIDIA driver, and the CUDA libraries that LibTorch was "
                "built with",
       .install = "tools/setup.sh --cuda installs the libraries, and cmake "
                  "lists those that are missing"}));
  return std::unique_ptr<Accelerator>(make(options));
}
