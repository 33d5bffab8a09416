//===- UseMeter.cpp - Measures memory and waiting -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/UseMeter.h"

#include "runtime/interpreter/Status.h"

#include <fstream>
#include <unistd.h>

using namespace chimera::runtime;

uint64_t chimera::runtime::residentBytes() {
  // The file has the sizes of all memory and of resident memory, in pages.
  std::ifstream sizes("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  if (!(sizes >> all >> resident))
    return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

StepUse UseMeter::measure(std::optional<double> waiting) {
  constexpr int64_t kInterval = 100'000'000; // ns
  const int64_t now = steadyNanoseconds();
  if (!measuredAt || now - *measuredAt >= kInterval) {
    measuredAt = now;
    last.residentBytes = residentBytes();
    if (device)
      last.deviceBytes = device->allocatedBytes().value_or(0);
  }
  last.waiting = waiting.value_or(0);
  last.measured = waiting ? 1 : 0;
  return last;
}
