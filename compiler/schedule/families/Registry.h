//===- Registry.h - The list of schemes -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FAMILIES_REGISTRY_H
#define CHIMERA_COMPILER_SCHEDULE_FAMILIES_REGISTRY_H

#include "compiler/schedule/families/Scheme.h"

#include <span>
#include <string_view>

namespace chimera::schedule {

/// All schemes.
std::span<const Scheme> schemes();

/// Null if no scheme has this name.
const Scheme *findScheme(std::string_view name);

/// "chimera, gpipe, 1f1b, gems, …".
std::string schemeNames();

/// A hint for a diagnostic about an unknown scheme, to be appended to "got
/// NAME". If the name is another spelling of a scheme, or its name in papers or
/// other tools, the hint is ": did you mean SCHEME?". If it is the name of a
/// schedule that is not supported yet, the hint says so, and how the user can
/// give its order. Otherwise it is empty. Case, hyphens and PyTorch's
/// "Schedule" are ignored.
std::string hintForUnknownScheme(std::string_view name);

/// The help text: a line for each scheme, and an indented line for each of its
/// options.
std::string schemeHelp();

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_REGISTRY_H
