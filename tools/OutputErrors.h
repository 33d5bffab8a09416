//===- OutputErrors.h - Files that a tool must not write --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_OUTPUTERRORS_H
#define CHIMERA_TOOLS_OUTPUTERRORS_H

#include "runtime/program/Output.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace chimera {

/// A file of the command line: its name in messages, such as "--svg", and its
/// path. The path is "-" for a standard stream. It is empty if the option is
/// not given.
struct NamedFile {
  std::string name, path;
};

/// An error message if a file of `outputs` cannot be written now, is also one
/// of `inputs`, or occurs twice in `outputs`. Empty if there is no error.
inline std::string errorOfOutputs(std::span<const NamedFile> inputs,
                                  std::span<const NamedFile> outputs) {
  std::vector<NamedFile> taken;
  for (const NamedFile &input : inputs)
    if (!input.path.empty())
      taken.push_back(
          {input.name, input.path == "-" ? "/dev/stdin" : input.path});
  for (const auto &[name, path] : outputs) {
    if (path.empty())
      continue;
    if (std::string error = path == "-" ? "" : program::checkOutput(path);
        !error.empty())
      return error;
    std::string file = path == "-" ? "/dev/stdout" : path;
    for (const auto &[other, used] : taken)
      if (file == used && file == "/dev/stdout")
        return "expected one document on standard output, got " + other +
               " - and " + name + " -";
      else if (program::areSameFile(file, used))
        return path + ": expected another file for " + name + " than " + other;
    taken.push_back({name, file});
  }
  return {};
}

} // namespace chimera

#endif // CHIMERA_TOOLS_OUTPUTERRORS_H
