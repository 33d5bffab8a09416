//===- Order.cpp - A global order of actions ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Order.h"

#include <algorithm>
#include <tuple>

namespace chimera {

std::vector<Turn> globalOrder(const schedule::Timing &timing) {
  std::vector<Turn> order;
  for (size_t w = 0; w < timing.starts.size(); ++w)
    for (size_t i = 0; i < timing.starts[w].size(); ++i)
      order.push_back({timing.starts[w][i], static_cast<int32_t>(w),
                       static_cast<int32_t>(i)});
  std::sort(order.begin(), order.end(), [](const Turn &a, const Turn &b) {
    return std::tie(a.start, a.worker) < std::tie(b.start, b.worker);
  });
  return order;
}

} // namespace chimera
