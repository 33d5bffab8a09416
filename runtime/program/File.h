//===- File.h - Reading and writing program files ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On disk a program is a 32-byte header and a FlatBuffer (program.fbs), all
// little-endian:
//
//   offset 0   8 bytes   magic "CHIMERA\n"
//          8   uint32    major version: readers refuse any other
//         12   uint32    minor version: readers accept any
//         16   uint64    bytes of the FlatBuffer
//         24   uint64    checksum of the FlatBuffer
//         32             the FlatBuffer
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_FILE_H
#define CHIMERA_RUNTIME_PROGRAM_FILE_H

#include "runtime/program/Program.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chimera::program {

inline constexpr uint32_t kMajorVersion = 6;
inline constexpr uint32_t kMinorVersion = 0;

/// The checksum in the header. It detects damage, not tampering.
uint64_t checksum(std::span<const std::byte> payload);

/// True if `bytes` begin like a program file, of any version.
bool isProgram(std::span<const std::byte> bytes);

/// The bytes of a program file: header and FlatBuffer. Requires a program that
/// has all its tables and takes less than 2 GB.
std::vector<std::byte> serialize(const ProgramT &program);

/// The program in `bytes`. Its structure is checked; it is not verified yet.
/// Fails, with the reason in `error`, if the file is not a program or
/// truncated, or has another major version, a wrong checksum, a malformed
/// FlatBuffer or parts that share bytes. The program takes at most about ten
/// times the memory of `bytes`.
std::optional<ProgramT> deserialize(std::span<const std::byte> bytes,
                                    std::string &error);

/// Calls deserialize for the file at `path`; `error` names the path. Reads no
/// more bytes than the header states.
std::optional<ProgramT> deserializeFile(const std::string &path,
                                        std::string &error);

/// Whether the program has all its tables. A program that lacks one cannot be
/// serialized.
bool hasAllTables(const ProgramT &program);

/// Writes serialize(program) to `path`, completely or not at all
/// (writeAtomically), or to standard output if `path` is `-`. Returns false,
/// with the reason in `error`, if that fails or if the program would take 2 GB
/// or more. Calls `mayPublish` as writeAtomically does. Requires a program that
/// has all its tables.
bool serializeFile(
    const ProgramT &program, const std::string &path, std::string &error,
    const std::function<bool()> &mayPublish = [] { return true; });

/// The program as JSON, for people and scripts: every field of the schema, with
/// the names of enumerators and a description of each instruction.
std::string dumpJson(const ProgramT &program);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_FILE_H
