//===- FallbackFile.cpp - A fallback place for an output file -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/FallbackFile.h"

#include <filesystem>
#include <sys/stat.h>
#include <system_error>

namespace fs = std::filesystem;

namespace chimera::program {

namespace {
bool isThere(const fs::path &path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0;
}

/// Calls `write` with a path in `folder` that is not in use. Returns this path,
/// or an empty path if `write` returns false although the path is not in use.
std::string writeInto(const fs::path &folder, const std::string &name,
                      const std::function<bool(const std::string &)> &write) {
  constexpr int kMaxNames = 1000;
  for (int i = 1; i <= kMaxNames; ++i) {
    fs::path path =
        folder / ("rescued-" + (i == 1 ? "" : std::to_string(i) + "-") + name);
    if (isThere(path))
      continue;
    if (write(path))
      return path;
    // If a file has this path now, another run created it after the check
    // above. In this case, try the next name.
    if (!isThere(path))
      break;
  }
  return {};
}
} // namespace

std::string
writeFallback(const std::string &path,
              const std::function<bool(const std::string &)> &write) {
  std::error_code error;
  for (const fs::path &folder :
       {fs::current_path(error), fs::temp_directory_path(error)})
    if (!folder.empty())
      if (std::string written =
              writeInto(folder, fs::path(path).filename(), write);
          !written.empty())
        return written;
  return {};
}

} // namespace chimera::program
