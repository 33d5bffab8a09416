//===- CommonOptions.h - Options of runs and calibrations -------*- C++ -*-===//
//-*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that convert options of chimera-run. Training and calibration share
// these options.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_COMMONOPTIONS_H
#define CHIMERA_TOOLS_COMMONOPTIONS_H

#include "runtime/system/Deadline.h"
#include "runtime/train/RunAsRank.h"
#include "tools/RunFiles.h"

#include <cmath>
#include <cstdio>
#include <string_view>

namespace chimera {

inline runtime::ProgressMode progressMode(const RunSettings &settings) {
  return settings.progress == kOn    ? runtime::ProgressMode::On
         : settings.progress == kOff ? runtime::ProgressMode::Off
                                     : runtime::ProgressMode::Auto;
}

/// The longest wait for another rank: --timeout, or half an hour by default. So
/// a rank that never answers does not block the other ranks for ever. --timeout
/// 0 means no limit.
inline std::chrono::milliseconds timeoutOf(const RunSettings &settings) {
  double seconds = settings.timeout.value_or(1800);
  return seconds > 0 ? std::chrono::milliseconds(static_cast<int64_t>(
                           std::ceil(std::min(seconds, 1e9) * 1000)))
                     : std::chrono::milliseconds(runtime::kForever);
}

/// The file for the weights of a run that SIGINT or SIGTERM ends. It is
/// lastFiniteFile(--save). If --save is a pipe, it is the pipe, because the
/// reader of the pipe waits for weights.
inline std::string fileAfterSignal(const RunSettings &settings) {
  const std::string lastFinite = lastFiniteFile(settings.save);
  return lastFinite.empty() ? settings.save : lastFinite;
}

/// The seconds of --grace. The default is shorter than the delay after which a
/// launcher kills its processes: 1 s for mpirun, 30 s for torchrun, Slurm and
/// Kubernetes.
inline double graceSeconds(const RunSettings &settings,
                           const std::optional<runtime::Job> &job) {
  const bool isUnderMpirun = job && std::string_view(job->launcher) == "mpirun";
  return settings.grace.value_or(isUnderMpirun ? 0.6 : 25);
}

/// The time that a run has after SIGINT or SIGTERM to end its step and save its
/// state. None if neither weights nor checkpoints are saved, or with --grace 0.
/// `onBegin` is called with the signal when this time begins.
inline std::optional<runtime::Grace>
graceAfterSignal(const RunSettings &settings,
                 const std::optional<runtime::Job> &job,
                 std::function<void(int)> onBegin) {
  const double seconds = graceSeconds(settings, job);
  if ((settings.save.empty() && settings.checkpoint.empty()) || seconds == 0)
    return std::nullopt;
  return runtime::Grace{
      std::chrono::milliseconds(
          static_cast<int64_t>(std::ceil(seconds * 1000))),
      std::move(onBegin),
      settings.checkpoint.empty()
          ? "the weights are not saved"
          : "the steps since the last checkpoint are lost; --resume " +
                settings.checkpoint + " continues from it"};
}

/// Prints `reason` as an error and flushes all output. Call it before the
/// process ends.
inline void reportFailure(const std::string &reason) {
  std::fprintf(stderr, "chimera-run: %s\n", reason.c_str());
  std::fflush(nullptr);
}

} // namespace chimera

#endif // CHIMERA_TOOLS_COMMONOPTIONS_H
