//===- LoadModule.cpp - Shared objects that a program loads ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/LoadModule.h"

#include <atomic>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>

using namespace chimera::runtime;

static std::atomic<std::chrono::steady_clock::duration> spent{};

std::chrono::milliseconds chimera::runtime::timeLoadingModules() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(spent.load());
}

/// Loads the shared object. Null if this fails; dlerror() then says why.
static void *load(const std::filesystem::path &path) {
  const auto begin = std::chrono::steady_clock::now();
  void *loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  const auto end = std::chrono::steady_clock::now();
  spent = spent.load() + (end - begin);
  return loaded;
}

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
    throw std::runtime_error(
        advice.missing + ": expected " + module.file + " in " +
        program.string() + " or ../lib/chimera from there. " + advice.install);
  void *loaded = load(path);
  if (!loaded)
    throw std::runtime_error("cannot load " + path.string() + ": " + dlerror() +
                             ". It needs " + advice.needs + ". " +
                             advice.install);
  void *function = dlsym(loaded, module.function);
  if (!function)
    throw std::runtime_error(path.string() +
                             ": expected the module of this version of "
                             "chimera, got another: build both together");
  return function;
}
