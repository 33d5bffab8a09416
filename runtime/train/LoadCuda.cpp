//===- LoadCuda.cpp - Loading the module for CUDA and NCCL ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Accelerator.h"
#include "runtime/train/CudaModule.h"

#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>

using namespace chimera::runtime;

/// The path of the module. In a build it is beside the program; when installed,
/// it is in the library folder.
static std::filesystem::path findModule() {
  std::error_code error;
  std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char *folder : {".", "../lib/chimera", "../lib64/chimera"}) {
    std::filesystem::path module = program / folder / kCudaModule;
    if (std::filesystem::exists(module, error))
      return module.lexically_normal();
  }
  throw std::runtime_error(
      "this chimera was built without CUDA: expected " +
      std::string(kCudaModule) + " in " + program.string() +
      " or ../lib/chimera from there. tools/setup.sh --cuda installs the "
      "requirements, and cmake lists those that are missing");
}

std::unique_ptr<Accelerator>
chimera::runtime::loadCuda(const AcceleratorOptions &options) {
  std::filesystem::path path = findModule();
  // The module is never closed, so neither it nor the libraries that it links
  // are unloaded.
  void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!module)
    throw std::runtime_error(
        "cannot load " + path.string() + ": " + dlerror() +
        ". It needs an NVIDIA driver, and the CUDA libraries that LibTorch was "
        "built with (tools/setup.sh --cuda)");
  auto *make =
      reinterpret_cast<MakeAccelerator *>(dlsym(module, kMakeAccelerator));
  if (!make)
    throw std::runtime_error(path.string() +
                             ": expected the module of this version of "
                             "chimera, got another: build both together");
  return std::unique_ptr<Accelerator>(make(options));
}
