//===- Network.cpp - Times of messages and all-reduces --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Network.h"

#include <algorithm>

namespace chimera::schedule {

std::vector<const LinkClass *> Network::classes() const {
  std::vector<const LinkClass *> all = {this};
  if (node)
    all.push_back(&node->links);
  return all;
}

std::vector<LinkClass *> Network::classes() {
  std::vector<LinkClass *> all = {this};
  if (node)
    all.push_back(&node->links);
  return all;
}

bool Network::hasFlights() const {
  return std::ranges::any_of(classes(), [](const LinkClass *links) {
    return links->link.alpha > 0 || links->link.beta > 0;
  });
}

} // namespace chimera::schedule
