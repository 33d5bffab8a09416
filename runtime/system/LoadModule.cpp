//===- LoadModule.cpp - Shared objects that a program loads ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/LoadModule.h"

#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>

using namespace chimera::runtime;

void *chimera::runtime::loadModule(const ModuleName &module,
                                   const ModuleAdvice &advice) {
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::filesystem::path path;
  for (const char *folder : {".", "../lib/chimera", "../lib64/chimera"})
    if (path.empty() &&
        std::filesystem::exists(program / folder / module.file, error))
      path = (program / folder / module.file).lexically_normal();
  if (path.empty())
    throw std::runtime_error(advice.missing + ": expected " + module.file +
                             " in " + program.string() +
                             " or ../lib/chimera from there. " +
                             advice.install);
  void *loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!loaded)
    throw std::runtime_error("cannot load " + path.string() + ": " +
                             dlerror() + ". It needs " + advice.needs + ". " +
                             advice.install);
  void *function = dlsym(loaded, module.function);
  if (!function)
    throw std::runtime_error(path.string() +
                             ": expected the module of this version of "
                             "chimera, got another: build both together");
  return function;
}
