//===- StartNotices.h - What a run says before its first step ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_STARTNOTICES_H
#define CHIMERA_TOOLS_STARTNOTICES_H

#include "runtime/train/RunOnHost.h"
#include "tools/Workload.h"

#include <functional>
#include <string>

namespace chimera {

/// A number of bytes with a unit: "0.5 kB", "23.4 MB", "1.2 GB".
std::string sizeText(uint64_t bytes);

/// Prints what a user should know before the first step: the pipeline and its
/// schedule, where the ranks are (`where`) and how many threads compute for a
/// rank, where the run begins, the memory of checkpoints, and everything that a
/// user may not expect. With --quiet, prints only what a run that resumes does
/// differently. Calls `takeThreads` before it measures the speed of bfloat16,
/// so that this thread computes with as many threads as a rank.
void printStart(const RunSettings &settings, const runtime::TrainingRun &run,
                const Workload &load, const std::string &where,
                const runtime::HostResources &share,
                const std::function<void()> &takeThreads);

} // namespace chimera

#endif // CHIMERA_TOOLS_STARTNOTICES_H
