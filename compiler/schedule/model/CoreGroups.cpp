//===- CoreGroups.cpp - Workers that share the cores of a node ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/CoreGroups.h"

#include <algorithm>

namespace chimera::schedule {

std::vector<CoreGroup> coreGroups(const Workload &workload) {
  std::vector<CoreGroup> groups;
  if (!workload.node || workload.node->cores == 0)
    return groups;
  const int64_t devices = workload.node->devices;
  const int64_t ranks = int64_t{workload.workers} * workload.width;
  for (int64_t first = 0; first < workload.workers; first += devices) {
    auto onNode = static_cast<double>(std::min(devices, ranks - first));
    auto workers =
        static_cast<int32_t>(std::min(devices, workload.workers - first));
    groups.push_back({workers, workload.node->cores * workers / onNode});
  }
  return groups;
}

bool sharesCores(const Workload &workload) {
  return std::ranges::any_of(coreGroups(workload), [](const CoreGroup &group) {
    return group.cores < group.workers;
  });
}

double minStepTime(const Workload &workload, std::span<const int64_t> busy) {
  auto least = static_cast<double>(std::ranges::max(busy));
  for (const CoreGroup &group : coreGroups(workload)) {
    double sum = 0;
    for (int64_t time : busy.first(group.workers))
      sum += static_cast<double>(time);
    least = std::max(least, sum / group.cores);
    busy = busy.subspan(group.workers);
  }
  return least;
}

std::vector<double> slowdowns(const Workload &workload) {
  std::vector<double> all;
  for (const CoreGroup &group : coreGroups(workload))
    all.insert(all.end(), group.workers,
               std::max(1.0, group.workers / group.cores));
  all.resize(workload.workers, 1.0);
  return all;
}

} // namespace chimera::schedule
