//===- ControlGroups.h - Control groups of a process ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A container, a batch job and a system service each run in a control group
// (cgroup) of Linux. The group can limit the CPU time and the memory of its
// processes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CONTROLGROUPS_H
#define CHIMERA_RUNTIME_SYSTEM_CONTROLGROUPS_H

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A control group, with the version of its interface (cgroup v1 or v2).
struct ControlGroup {
  enum class Version { One, Two };
  Version version;
  std::filesystem::path folder; ///< the group's folder in the file system
};

/// The control groups of this process that can limit `controller` ("cpu" or
/// "memory"), and all groups that enclose them. The result is read from /proc
/// and /sys. For tests, `root` is a prefix of these paths.
std::vector<ControlGroup> findControlGroups(const std::string &controller,
                                            const std::string &root = "");

/// The number at the beginning of a file. None if the file does not begin with
/// a number.
std::optional<double> readNumber(const std::filesystem::path &file);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_CONTROLGROUPS_H
