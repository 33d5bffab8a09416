//===- Wishes.h - Options as the runtime takes them -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a run of a program and a calibration have in common.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_WISHES_H
#define CHIMERA_TOOLS_WISHES_H

#include "runtime/system/Deadline.h"
#include "runtime/train/RunAsRank.h"
#include "tools/RunSettings.h"

#include <cmath>
#include <cstdio>

namespace chimera {

inline runtime::ProgressWish progressWish(const RunSettings &settings) {
  return settings.progress == kOn    ? runtime::ProgressWish::On
         : settings.progress == kOff ? runtime::ProgressWish::Off
                                     : runtime::ProgressWish::Auto;
}

/// A rank that never answers should not keep the others for ever: unless given,
/// a wait for it ends after half an hour.
inline std::chrono::milliseconds timeoutOf(const RunSettings &settings) {
  double seconds = settings.timeout.value_or(1800);
  return seconds > 0 ? std::chrono::milliseconds(static_cast<int64_t>(
                           std::ceil(std::min(seconds, 1e9) * 1000)))
                     : std::chrono::milliseconds(runtime::kForever);
}

/// To be told before the process ends, with the output that it still holds.
inline void tellFailure(const std::string &reason) {
  std::fprintf(stderr, "chimera-run: %s\n", reason.c_str());
  std::fflush(nullptr);
}

} // namespace chimera

#endif // CHIMERA_TOOLS_WISHES_H
