//===- CheckSettings.h - Checks of option combinations ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_CHECKSETTINGS_H
#define CHIMERA_TOOLS_CHECKSETTINGS_H

#include "runtime/control/join/Join.h"
#include "runtime/train/Launch.h"
#include "tools/RunSettings.h"

namespace chimera {

/// Throws std::exception if some options of chimera-run cannot be used
/// together, or cannot work on this host. Checks only what can be known before
/// the program is read.
void checkSettings(const RunSettings &settings);

/// The transport between the processes of a job. None if all ranks are threads
/// of this process.
std::optional<runtime::JobTransport>
chooseTransport(const RunSettings &settings,
                const std::optional<runtime::Job> &job);

/// Throws std::invalid_argument if an option does not fit the way in which the
/// process was started, for example --ranks under a launcher.
void checkLaunch(const RunSettings &settings,
                 const std::optional<runtime::Job> &job,
                 const std::optional<runtime::JobTransport> &transport);

} // namespace chimera

#endif // CHIMERA_TOOLS_CHECKSETTINGS_H
