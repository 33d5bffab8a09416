//===- Machine.cpp - The devices that a plan uses -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Machine.h"

#include <algorithm>

namespace chimera::cost {

int64_t nanosecondsFor(int64_t amount, int64_t rate) {
  __extension__ using Wide = __int128;
  Wide time = (static_cast<Wide>(amount) * 1000000000 + rate - 1) / rate;
  return static_cast<int64_t>(std::min<Wide>(time, int64_t{1} << 60));
}

} // namespace chimera::cost
