//===- ControlGroups.h - Who bounds this process ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A container, a job of a batch system and a service are control groups: they
// bound the time on cores and the memory of the processes in them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CONTROLGROUPS_H
#define CHIMERA_RUNTIME_SYSTEM_CONTROLGROUPS_H

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A control group, of one of two versions of the interface.
struct ControlGroup {
  enum class Version { One, Two };
  Version version;
  std::filesystem::path folder; ///< that holds its files
};

/// The groups of this process that can bound what `controller` counts ("cpu",
/// "memory"), with all groups around them. The system's files are looked for
/// below the folder `root`.
std::vector<ControlGroup> findControlGroups(const std::string &controller,
                                            const std::string &root = "");

/// The number that a file begins with, nothing where it begins with none.
std::optional<double> readNumber(const std::filesystem::path &file);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_CONTROLGROUPS_H
