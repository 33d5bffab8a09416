//===- Cores.cpp - The number of cores of a rank --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/Cores.h"

#include "runtime/system/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <unistd.h>

using namespace chimera::runtime;

namespace {
std::optional<double> readQuota(const ControlGroup &group) {
  std::optional<double> quota, period;
  if (group.version == ControlGroup::Version::One) {
    quota = readNumber(group.folder / "cpu.cfs_quota_us");
    period = readNumber(group.folder / "cpu.cfs_period_us");
  } else {
    // If there is no quota, the first word of the file is "max", and reading a
    // number fails.
    double numbers[2];
    if (std::ifstream(group.folder / "cpu.max") >> numbers[0] >> numbers[1]) {
      quota = numbers[0];
      period = numbers[1];
    }
  }
  // In version 1, the quota is -1 if there is none.
  if (!quota || !period || *quota <= 0 || *period <= 0)
    return std::nullopt;
  return *quota / *period;
}
} // namespace

std::optional<double> chimera::runtime::findQuota(const std::string &root) {
  std::optional<double> least;
  for (const ControlGroup &group : findControlGroups("cpu", root))
    if (std::optional<double> quota = readQuota(group);
        quota && (!least || *quota < *least))
      least = quota;
  return least;
}

Cores chimera::runtime::findCores(const std::string &root) {
  long online = std::max(1l, sysconf(_SC_NPROCESSORS_ONLN));
  long bound = online;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    bound = std::max(1, CPU_COUNT(&set));
  // Round the quota down. If there were more threads than whole cores, the
  // kernel would pause some threads, and all other threads would wait for them.
  double quota = std::max(1.0, findQuota(root).value_or(1e9));
  auto within = [&](long cores) {
    return static_cast<uint32_t>(std::min(static_cast<double>(cores), quota));
  };
  return {within(online), within(bound)};
}
