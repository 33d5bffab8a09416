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

/// The checksum that the header holds. It finds damage, not malice.
uint64_t checksum(std::span<const std::byte> payload);

/// True if `bytes` begin like a program file, of any version.
bool isProgram(std::span<const std::byte> bytes);

/// The bytes of a program file: header and FlatBuffer. Requires a program
/// that has all its tables and takes less than 2 GB.
std::vector<std::byte> serialize(const ProgramT &program);

/// The program in `bytes`, structurally sound but not yet verified. Fails, with
/// the reason in `error`, on a foreign or truncated file, another major
/// version, a wrong checksum, a malformed FlatBuffer and one whose parts share
/// bytes. The program takes at most some ten times the memory of `bytes`.
std::optional<ProgramT> deserialize(std::span<const std::byte> bytes,
                                    std::string &error);

/// deserialize of the file at `path`, which `error` names. Reads no more than
/// the header announces.
std::optional<ProgramT> deserializeFile(const std::string &path,
                                        std::string &error);

/// Whether all tables of the program are there. Nothing can serialize it where
/// one is missing.
bool hasAllTables(const ProgramT &program);

/// Writes serialize(program) to `path` whole or not at all (writeWhole), or to
/// standard output for `-`. False, with the reason in `error`, where that fails
/// and where the program would take 2 GB. Asks `isWanted` like writeWhole.
/// Requires what serialize does, but for the size.
bool serializeFile(
    const ProgramT &program, const std::string &path, std::string &error,
    const std::function<bool()> &isWanted = [] { return true; });

/// The program as JSON, for people and scripts: every field of the schema, with
/// enumerators spelled out and each instruction described in words.
std::string dumpJson(const ProgramT &program);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_FILE_H
