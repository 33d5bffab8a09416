//===- FallbackFile.h - A fallback place for an output file -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_FALLBACKFILE_H
#define CHIMERA_RUNTIME_PROGRAM_FALLBACKFILE_H

#include <functional>
#include <string>

namespace chimera::program {

/// Saves the result of long work in another folder, if `path` cannot be
/// written. Calls `write` with a path whose file name is derived from `path`
/// and not in use. The path is first in the current folder. If `write` returns
/// false, it is in the folder for temporary files (TMPDIR, else /tmp). Returns
/// the absolute path of the written file, or an empty string if `write`
/// returned false for both folders. `write` must not replace a file
/// (IfExists::Fail).
std::string
writeFallback(const std::string &path,
              const std::function<bool(const std::string &)> &write);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_FALLBACKFILE_H
