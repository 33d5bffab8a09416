//===- Output.h - Files written completely or not at all --------*- C++ -*-===//
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

using ByteRanges = std::initializer_list<std::span<const std::byte>>;

/// The operating system's message for an error number.
std::string reasonOf(int code);

/// Writes the parts one after another to an open file. Returns false, with
/// errno set, if not all bytes could be written.
bool writeAll(int descriptor, ByteRanges parts);

/// The action if a file of the same name exists.
enum class IfExists { Replace, Fail };

/// Writes the parts one after another to `path`, completely or not at all: it
/// writes a new file in the same folder and then gives it the name `path`. If
/// `path` is a symbolic link, the link stays and the file that it names is
/// replaced (targetOf). If `path` is not a regular file, for example a pipe or
/// /dev/null, the parts are written to it directly. Returns false, with the
/// reason in `error`, if writing fails, or if `ifExists` is Fail and a file of
/// this name exists.
///
/// The new file has no name until it is complete (O_TMPFILE). There are two
/// exceptions, in which it has the temporary name PATH.PID.NUMBER.tmp. If it
/// replaces another file, it has the temporary name between two system calls.
/// If the file system has no unnamed files (for example NFS), it has the
/// temporary name while it is written. If the process is killed, a file with a
/// temporary name can remain. The next call for the same `path` removes it,
/// unless the file is locked: a writer holds a lock while it is alive.
///
/// Calls `mayPublish` immediately before the result becomes visible. If
/// `mayPublish` returns false, it must have set `error`; writeAtomically then
/// removes the new file and returns false.
bool writeAtomically(
    const std::string &path, ByteRanges parts, std::string &error,
    const std::function<bool()> &mayPublish = [] { return true; },
    IfExists ifExists = IfExists::Replace);

/// Like the first writeAtomically, but calls `write` to write the content to
/// the open file. `write` returns false, with errno set, if it fails.
bool writeAtomically(
    const std::string &path, const std::function<bool(int)> &write,
    std::string &error,
    const std::function<bool()> &mayPublish = [] { return true; },
    IfExists ifExists = IfExists::Replace);

/// Writes the parts to standard output if `mayPublish` returns true. Returns
/// false, with the reason in `error`, if `mayPublish` or the writing fails.
bool writeStandardOutput(ByteRanges parts, std::string &error,
                         const std::function<bool()> &mayPublish);

/// Checks whether `path` can be written. Returns an error text, or an empty
/// text if no problem was found. Call it before long work whose result is
/// written to `path`.
std::string checkOutput(const std::string &path);

/// Whether writeAtomically can put a new file in the place of `path`: `path`
/// names a regular file, or no file. False if `path` leads to an open file that
/// no longer has a name (/proc/self/fd/NUMBER).
bool isRegularOrNew(const std::string &path);

/// The path of the file that a write to `path` creates or replaces. It is the
/// end of the chain of symbolic links that begins at `path`. The file need not
/// exist.
std::string targetOf(const std::string &path);

/// Whether both paths name the same regular file, or the same file that does
/// not exist yet.
bool areSameFile(const std::string &left, const std::string &right);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_OUTPUT_H
