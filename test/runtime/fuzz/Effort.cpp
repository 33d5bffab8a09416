//===- Effort.cpp - Limits on the cost of reading a file ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/fuzz/Effort.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sanitizer/allocator_interface.h>

namespace {
std::atomic<int64_t> live, most;

void onMalloc(const volatile void *, size_t size) {
  int64_t now = live += static_cast<int64_t>(size);
  int64_t before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
}

void onFree(const volatile void *memory) {
  if (memory)
    live -= static_cast<int64_t>(
        __sanitizer_get_allocated_size(const_cast<const void *>(memory)));
}

const bool kIsCounting =
    __sanitizer_install_malloc_and_free_hooks(onMalloc, onFree) != 0;

// The allowed costs of a very small file.
constexpr double kMemoryAnyway = 1 << 20, kRegionsAnyway = 1 << 20;
// The further allowed costs per byte of the file: about four times the usual
// costs.
constexpr double kMemory = 12, kRegions = 40;

chimera::fuzz::Highest highest{0, 0};
} // namespace

// The first and last address of LLVM's profile counters, which count how often
// each region of the code ran.
extern "C" {
char *__llvm_profile_begin_counters(void);
char *__llvm_profile_end_counters(void);
}

static uint64_t regionsRun() {
  auto *begin = reinterpret_cast<uint64_t *>(__llvm_profile_begin_counters());
  auto *end = reinterpret_cast<uint64_t *>(__llvm_profile_end_counters());
  return std::accumulate(begin, end, uint64_t(0));
}

namespace chimera::fuzz {

Effort::Effort() : before(regionsRun()) { live = most = 0; }

void Effort::check(const char *what, size_t bytes) const {
  auto size = static_cast<double>(bytes);
  auto memory = static_cast<double>(most),
       ran = static_cast<double>(regionsRun() - before);
  if (bytes >= 1 << 16) {
    highest.memory = std::max(highest.memory, memory / size);
    highest.regions = std::max(highest.regions, ran / size);
  }
  if (kIsCounting && memory <= kMemoryAnyway + kMemory * size &&
      ran <= kRegionsAnyway + kRegions * size)
    return;
  std::fprintf(stderr,
               "expected %s of %zu bytes in at most %.0f bytes of memory and "
               "%.0f regions of code run, got %.0f and %.0f\n",
               what, bytes, kMemoryAnyway + kMemory * size,
               kRegionsAnyway + kRegions * size, memory, ran);
  std::abort();
}

Highest highestEffort() { return highest; }

} // namespace chimera::fuzz
