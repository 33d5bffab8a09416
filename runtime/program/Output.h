//===- Output.h - Files written whole ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_OUTPUT_H
#define CHIMERA_RUNTIME_PROGRAM_OUTPUT_H

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>

namespace chimera::program {

/// Writes the parts, one behind the other, to `path` whole or not at all: they
/// go to a new file beside it that then takes its name. Links stay links, and
/// what is no regular file, like a pipe or /dev/null, is written directly.
/// False, with the reason in `error`, where that fails.
///
/// Asks `isWanted` at the last moment before anything can be seen of it; where
/// that gives false, having said why in `error`, nothing is left.
bool writeWhole(
    const std::string &path,
    std::initializer_list<std::span<const std::byte>> parts, std::string &error,
    const std::function<bool()> &isWanted = [] { return true; });

/// Empty if `path` looks writable now, else why it is not: to be asked before
/// long work whose result is to go there.
std::string checkOutput(const std::string &path);

/// Whether `path` names a regular file, or nothing yet.
bool isRegularOrNew(const std::string &path);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_OUTPUT_H
