//===- CheckSettings.h - Which options go together -------------*- C++ -*-===//
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

/// Throws std::exception for options of chimera-run that can be known to fail
/// together, or on this host, before the program is read.
void checkSettings(const RunSettings &settings);

/// What moves values between the processes of a job; nothing where ranks are
/// threads of this one.
std::optional<runtime::JobTransport>
chooseTransport(const RunSettings &settings,
                const std::optional<runtime::Job> &job);

/// Throws std::invalid_argument for options that do not fit how the process was
/// started.
void checkLaunch(const RunSettings &settings,
                 const std::optional<runtime::Job> &job,
                 const std::optional<runtime::JobTransport> &transport);

} // namespace chimera

#endif // CHIMERA_TOOLS_CHECKSETTINGS_H
