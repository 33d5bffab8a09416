//===- Cores.cpp - The cores that ranks have ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Cores.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <unistd.h>

using namespace chimera::runtime;
namespace fs = std::filesystem;

namespace {
enum class Version { One, Two };

/// Where a hierarchy of control groups is mounted. With a namespace of its own
/// or a bind mount, a container sees only a part of the hierarchy.
struct Mount {
  Version version;
  std::string root;  ///< the group that is at `point`
  std::string point; ///< a folder
};

bool hasWord(const std::string &list, const std::string &word) {
  std::istringstream stream(list);
  for (std::string next; std::getline(stream, next, ',');)
    if (next == word)
      return true;
  return false;
}

/// The mount that a line of /proc/self/mountinfo (proc(5)) describes, if it is
/// one of groups that bound the time on cores.
std::optional<Mount> readMount(const std::string &line) {
  std::istringstream stream(line);
  std::string skipped, type, options;
  Mount mount;
  stream >> skipped >> skipped >> skipped >> mount.root >> mount.point;
  while (stream >> skipped && skipped != "-")
    ;
  stream >> type >> skipped >> options;
  if (type == "cgroup2")
    mount.version = Version::Two;
  else if (type == "cgroup" && hasWord(options, "cpu"))
    mount.version = Version::One;
  else
    return std::nullopt;
  return mount;
}

/// The group of this process, as an absolute path in its hierarchy.
std::optional<std::string> findGroup(const std::string &root, Version version) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // ID:CONTROLLERS:PATH; version 2 names no controllers.
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == Version::Two ? controllers.empty()
                                : hasWord(controllers, "cpu"))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// The path of `group` below the mount; the mount itself where the group is
/// outside of what can be seen.
fs::path belowMount(const std::string &group, const std::string &mountRoot) {
  fs::path path = fs::path(group).lexically_relative(mountRoot);
  return path.empty() || path == "." || *path.begin() == ".." ? fs::path()
                                                              : path;
}

std::optional<double> readNumber(const fs::path &file) {
  double number = 0;
  return std::ifstream(file) >> number ? std::optional(number) : std::nullopt;
}

/// The quota of one group, which is a folder.
std::optional<double> readQuota(const fs::path &group, Version version) {
  std::optional<double> quota, period;
  if (version == Version::One) {
    quota = readNumber(group / "cpu.cfs_quota_us");
    period = readNumber(group / "cpu.cfs_period_us");
  } else {
    // "max 100000" where there is no quota.
    double numbers[2];
    if (std::ifstream(group / "cpu.max") >> numbers[0] >> numbers[1]) {
      quota = numbers[0];
      period = numbers[1];
    }
  }
  // Version 1 says -1 where there is none.
  if (!quota || !period || *quota <= 0 || *period <= 0)
    return std::nullopt;
  return *quota / *period;
}
} // namespace

std::optional<double> chimera::runtime::findQuota(const std::string &root) {
  std::optional<double> least;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::optional<Mount> mount = readMount(line);
    std::optional<std::string> group;
    if (mount)
      group = findGroup(root, mount->version);
    if (!group)
      continue;
    for (fs::path path = belowMount(*group, mount->root);;
         path = path.parent_path()) {
      std::optional<double> quota =
          readQuota(fs::path(root + mount->point) / path, mount->version);
      if (quota && (!least || *quota < *least))
        least = quota;
      if (path.empty())
        break;
    }
  }
  return least;
}

Cores chimera::runtime::findCores(const std::string &root) {
  long online = std::max(1l, sysconf(_SC_NPROCESSORS_ONLN));
  long bound = online;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    bound = std::max(1, CPU_COUNT(&set));
  // Rounded down: a thread too many has all of them wait for it.
  double quota = std::max(1.0, findQuota(root).value_or(1e9));
  auto within = [&](long cores) {
    return static_cast<uint32_t>(std::min(static_cast<double>(cores), quota));
  };
  return {within(online), within(bound)};
}
