//===- LoadModule.h - Shared objects that a program loads -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module is a shared object that a program loads when it needs the libraries
// that the module links. In a build it is beside the program. When installed,
// it is in the library folder.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_LOADMODULE_H
#define CHIMERA_RUNTIME_SYSTEM_LOADMODULE_H

#include <chrono>
#include <string>

namespace chimera::runtime {

struct ModuleName {
  const char *file;     ///< the file's name, without folders
  const char *function; ///< the module's only function (extern "C")
};

/// The texts of errors.
struct ModuleAdvice {
  std::string missing; ///< why there may be no file: "it was not built"
  std::string needs;   ///< what the module needs to load: "an NVIDIA driver"
  std::string install; ///< how to get both
};

/// Loads the module and returns its function. The module is never unloaded.
/// Its symbols are visible to the modules that are loaded later. Symbols that
/// the program defines and exports replace the module's own. Throws
/// std::runtime_error if there is no such file, if it does not load, or if it
/// does not have the function, because it belongs to another version of
/// chimera.
void *loadModule(const ModuleName &module, const ModuleAdvice &advice);

/// The time that all calls of loadModule have taken so far.
std::chrono::milliseconds timeLoadingModules();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_LOADMODULE_H
