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
#include "tools/RunFiles.h"

#include <cmath>
#include <cstdio>
#include <string_view>

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

/// The file that gets the weights of a run that SIGINT or SIGTERM ends. A pipe
/// has no file beside it, and its reader waits for weights, so the pipe itself
/// gets them.
inline std::string endedFileOf(const RunSettings &settings) {
  const std::string lastFinite = lastFiniteOf(settings.save);
  return lastFinite.empty() ? settings.save : lastFinite;
}

/// How long a run goes on after SIGINT or SIGTERM; none where nothing is saved
/// meanwhile. Less than the time after which launchers kill processes: 1 s for
/// mpirun, 30 s for torchrun, Slurm and Kubernetes.
inline std::optional<runtime::Grace>
graceOf(const RunSettings &settings, const std::optional<runtime::Job> &job,
        std::function<void(int)> onBegin) {
  const bool isUnderMpirun = job && std::string_view(job->launcher) == "mpirun";
  const double seconds = settings.grace.value_or(isUnderMpirun ? 0.6 : 25);
  if (settings.save.empty() || seconds == 0)
    return std::nullopt;
  return runtime::Grace{std::chrono::milliseconds(
                            static_cast<int64_t>(std::ceil(seconds * 1000))),
                        std::move(onBegin)};
}

/// To be told before the process ends, with the output that it still holds.
inline void tellFailure(const std::string &reason) {
  std::fprintf(stderr, "chimera-run: %s\n", reason.c_str());
  std::fflush(nullptr);
}

} // namespace chimera

#endif // CHIMERA_TOOLS_WISHES_H
