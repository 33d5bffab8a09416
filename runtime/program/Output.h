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

using Parts = std::initializer_list<std::span<const std::byte>>;

/// The operating system's message for an error number.
std::string reasonOf(int code);

/// Writes the parts, one after the other, to an open file. Returns false, with
/// errno set, if not all bytes could be written.
bool writeAll(int descriptor, Parts parts);

/// The action if a file of the same name exists.
enum class IfExists { Replace, Fail };

/// Writes the parts, one after the other, to `path`, completely or not at all:
/// it writes a new file in the same folder, which then takes the name. Symbolic
/// links stay links (see targetOf). If `path` is not a regular file, for
/// example a pipe or /dev/null, it is written directly. Returns false, with the
/// reason in `error`, if this fails, or if a file exists and `ifExists` is
/// Fail.
///
/// The new file has no name until it is complete; then it gets its final name.
/// There are two exceptions. If it replaces another file, it is called
/// PATH.PID.NUMBER.tmp for the time between two system calls. If the file
/// system has no unnamed files (for example NFS), it is called so from the
/// start. If a process is killed, such a file can stay; the next call for the
/// same `path` removes it. A file lock tells whether its writer is still alive.
///
/// Calls `mayPublish` at the last moment before the result becomes visible. If
/// it returns false, nothing is left; `mayPublish` must have set `error`.
bool writeAtomically(
    const std::string &path, Parts parts, std::string &error,
    const std::function<bool()> &mayPublish = [] { return true; },
    IfExists ifExists = IfExists::Replace);

/// Like the first writeAtomically, but `write` writes the content to an open
/// file. It returns false, with errno set, if it cannot.
bool writeAtomically(
    const std::string &path, const std::function<bool(int)> &write,
    std::string &error,
    const std::function<bool()> &mayPublish = [] { return true; },
    IfExists ifExists = IfExists::Replace);

/// Appends the parts to the process's standard output if `mayPublish` returns
/// true. Returns false as writeAtomically does.
bool writeStandardOutput(Parts parts, std::string &error,
                         const std::function<bool()> &mayPublish);

/// Returns why `path` cannot be written now; empty if it looks writable. Call
/// it before long work whose result goes there.
std::string checkOutput(const std::string &path);

/// Whether `path` names a regular file, or nothing yet, so that another file
/// can take its place. False for an open file that no longer has a name (for
/// example one given by /proc/self/fd).
bool isRegularOrNew(const std::string &path);

/// The path that a write to `path` creates or replaces: the end of its chain of
/// symbolic links, whether the file exists or not.
std::string targetOf(const std::string &path);

/// Whether both paths name the same regular file, or the same file that does
/// not exist yet.
bool areSameFile(const std::string &left, const std::string &right);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_OUTPUT_H
