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

inline constexpr uint32_t kMajorVersion = 9;
inline constexpr uint32_t kMinorVersion = 0;

/// The checksum in the header. It detects damage, not tampering.
uint64_t checksum(std::span<const std::byte> payload);

/// Whether `bytes` begin with the magic of a program file, of any version.
bool isProgram(std::span<const std::byte> bytes);

/// The bytes of a program file: header and FlatBuffer. Requires that
/// hasAllTables is true and that the file has less than 2 GB.
std::vector<std::byte> serialize(const ProgramT &program);

/// Converts the bytes of a program file to a program. Checks the structure of
/// the file, but does not verify the program (runtime/proof/Verify.h). Returns
/// none, with the reason in `error`, if the file is not a program or is
/// truncated, or if it has another major version, a wrong checksum, a malformed
/// FlatBuffer or parts that share bytes (SharedBytes.h). The program has at
/// most about ten times as many bytes as the file.
std::optional<ProgramT> deserialize(std::span<const std::byte> bytes,
                                    std::string &error);

/// Like deserialize, for the file at `path`. `error` names the path. Reads at
/// most one byte more than the size in the header.
std::optional<ProgramT> deserializeFile(const std::string &path,
                                        std::string &error);

/// Whether no pointer to an optimizer, a worker, a pipeline or a communicator
/// is null. If one is null, the program cannot be serialized.
bool hasAllTables(const ProgramT &program);

/// Writes serialize(program) to `path`, completely or not at all
/// (writeAtomically), or to standard output if `path` is `-`. Returns false,
/// with the reason in `error`, if that fails or if the file would have 2 GB or
/// more. Calls `mayPublish` as writeAtomically does. Requires that hasAllTables
/// is true.
bool serializeFile(
    const ProgramT &program, const std::string &path, std::string &error,
    const std::function<bool()> &mayPublish = [] { return true; });

/// The program as JSON, for people and scripts: every field of the schema, with
/// the names of enumerators and a description of each instruction.
std::string dumpJson(const ProgramT &program);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_FILE_H
