//===- Version.h - The version of the tools ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_VERSION_H
#define CHIMERA_TOOLS_VERSION_H

namespace chimera {

/// "0.1.0 (1a2b3c4d)": the version, and the commit from which the tools were
/// built. If files differed from the commit, "-dirty" is after the commit. If
/// the sources were no git checkout, only the version. tools/version.cmake
/// writes the definition.
extern const char *const kVersion;

} // namespace chimera

#endif // CHIMERA_TOOLS_VERSION_H
