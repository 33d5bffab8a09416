//===- Registry.cpp - The schemes by name ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Registry.h"

#include "compiler/schedule/families/Families.h"

#include <array>

namespace chimera::schedule {

std::span<const Scheme> schemes() {
  static const std::array<Scheme, 3> all = {kChimera, kGPipe,
                                            kOneForwardOneBackward};
  return all;
}

const Scheme *findScheme(std::string_view name) {
  for (const Scheme &scheme : schemes())
    if (name == scheme.name)
      return &scheme;
  return nullptr;
}

std::string schemeNames() {
  std::string names;
  for (const Scheme &scheme : schemes())
    names += (names.empty() ? "" : ", ") + std::string(scheme.name);
  return names;
}

Schedule makeSchedule(const Scheme &scheme, const Problem &problem) {
  Schedule schedule = scheme.order(problem);
  return problem.splitBackward ? splitBackwards(schedule) : schedule;
}

} // namespace chimera::schedule
