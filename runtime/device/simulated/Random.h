//===- Random.h - Random numbers from a seed --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_SIMULATED_RANDOM_H
#define CHIMERA_RUNTIME_DEVICE_SIMULATED_RANDOM_H

#include <cstdint>
#include <random>
#include <vector>

namespace chimera::runtime::simulated {

/// A random generator with the same numbers on every machine. The distributions
/// of the standard library do not promise this.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}

  uint64_t next() { return engine(); }
  /// A number in [0, count), or 0 if count is 0.
  uint64_t below(uint64_t count) { return count ? engine() % count : 0; }
  bool oneIn(uint64_t count) { return below(count) == 0; }
  template <typename T> T &any(std::vector<T> &list) {
    return list[below(list.size())];
  }

private:
  std::mt19937_64 engine;
};

} // namespace chimera::runtime::simulated

#endif // CHIMERA_RUNTIME_DEVICE_SIMULATED_RANDOM_H
