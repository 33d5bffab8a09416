//===- AllReduceTime.h - The time of an all-reduce --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_ALLREDUCETIME_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_ALLREDUCETIME_H

#include "compiler/schedule/model/Network.h"

#include <limits>

namespace chimera::schedule {

/// The buckets into which a gradient is cut. Each bucket has an all-reduce of
/// its own.
struct Buckets {
  int64_t count;
  int64_t each; ///< bytes of every bucket except the last
  int64_t last; ///< bytes of the last
};

/// Cuts a gradient of `bytes` into buckets of at most `most` bytes. Bucket
/// sizes are multiples of 8, because elements have up to 8 bytes and must not
/// be cut. There is one bucket if `most` is 0; otherwise `most` is at least 8.
Buckets bucketsOf(int64_t bytes, int64_t most);

/// The time of an all-reduce of `bytes` over r `replicas`, in ticks, rounded
/// up. Rabenseifner's algorithm takes 2 ⌈log2(r)⌉ alpha, and 2 (r-1)/r beta for
/// each byte. Doubling takes ⌈log2(r)⌉ times alpha and beta. Several buckets
/// are summed one after another, so alpha is counted once for each bucket. The
/// result is at most INT64_MAX.
int64_t
allReduceTime(const MessageTime &message, int64_t replicas, int64_t bytes,
              int64_t buckets = 1,
              AllReduceAlgorithm algorithm = AllReduceAlgorithm::Rabenseifner);

/// The sum of two times, at most INT64_MAX.
inline int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum)
             ? std::numeric_limits<int64_t>::max()
             : sum;
}

/// The time of an all-reduce of `bytes` over `replicas` on `links`. It is the
/// sum of the time for its messages and `allReduceOverhead`. Each message takes
/// `allReduceMessage` or, if that is not given, the sum of the three times of
/// `link`.
int64_t allReduceTime(const LinkClass &links, AllReduceAlgorithm algorithm,
                      int64_t replicas, int64_t bytes, int64_t buckets);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_ALLREDUCETIME_H
