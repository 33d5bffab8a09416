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

using Parts = std::initializer_list<std::span<const std::byte>>;

/// What the system says of an error number.
std::string reasonOf(int code);

/// Writes the parts, one after the other, to an open file. False, with errno
/// set, where not all bytes could be written.
bool writeAll(int descriptor, Parts parts);

/// What becomes of a file that has the name already.
enum class Existing { Replaced, Kept };

/// Writes the parts, one after the other, to `path` whole or not at all: they
/// go to a new file beside it that then takes its name. Links stay links (see
/// targetOf), and what is no regular file, like a pipe or /dev/null, is written
/// directly. False, with the reason in `error`, where that fails, as it does
/// where there is a file that is to be kept.
///
/// The new file has no name until it is complete, and then its own. Only where
/// it replaces another is it called PATH.PID.NUMBER.tmp before, between two
/// system calls; and all the time where the file system knows no files without
/// a name (NFS, say). What a process that was killed has left of such a name,
/// the next one that writes to `path` removes: a lock says whose writer lives.
///
/// Asks `isWanted` at the last moment before anything can be seen of it; where
/// that gives false, having said why in `error`, nothing is left.
bool writeWhole(
    const std::string &path, Parts parts, std::string &error,
    const std::function<bool()> &isWanted = [] { return true; },
    Existing existing = Existing::Replaced);

/// Likewise, where `write` writes the content to an open file. False, with
/// errno set, where it cannot.
bool writeWhole(
    const std::string &path, const std::function<bool(int)> &write,
    std::string &error,
    const std::function<bool()> &isWanted = [] { return true; },
    Existing existing = Existing::Replaced);

/// Writes the parts to the process's standard output, after what is there, if
/// `isWanted`. False likewise.
bool writeStandardOutput(Parts parts, std::string &error,
                         const std::function<bool()> &isWanted);

/// Empty if `path` looks writable now, else why it is not: to be asked before
/// long work whose result is to go there.
std::string checkOutput(const std::string &path);

/// Whether `path` names a regular file, or nothing yet: then another file can
/// take its place. An open file that has lost its name (by /proc/self/fd, say)
/// is no such.
bool isRegularOrNew(const std::string &path);

/// What is made or replaced by writing to `path`: the name to which its links
/// lead, be there a file already or not.
std::string targetOf(const std::string &path);

/// Whether both paths are those of one regular file, or of one that is not
/// there yet.
bool areSameFile(const std::string &left, const std::string &right);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_OUTPUT_H
