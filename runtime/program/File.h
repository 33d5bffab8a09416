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
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chimera::program {

inline constexpr uint32_t kMajorVersion = 2;
inline constexpr uint32_t kMinorVersion = 0;

/// The checksum that the header holds. It finds damage, not malice.
uint64_t checksum(std::span<const std::byte> payload);

/// The bytes of a program file: header and FlatBuffer. Requires a program
/// that verifyProgram accepts, or that differs from one in its numbers only,
/// and that takes less than 2 GB.
std::vector<std::byte> serialize(const ProgramT &program);

/// The program in `bytes`, structurally sound but not yet verified. Fails, with
/// the reason in `error`, on a foreign or truncated file, another major
/// version, a wrong checksum, a malformed FlatBuffer and one whose parts share
/// bytes. The program takes at most some ten times the memory of `bytes`.
std::optional<ProgramT> deserialize(std::span<const std::byte> bytes,
                                    std::string &error);

/// The program in `bytes`, verified. Fails where deserialize does, and where
/// verifyProgram finds something: `error` then holds every violation, a line
/// each where there are several.
std::optional<ProgramT> readProgram(std::span<const std::byte> bytes,
                                    std::string &error);

/// readProgram of the file at `path`, which `error` names.
std::optional<ProgramT> readProgramFile(const std::string &path,
                                        std::string &error);

/// Runs verifyProgram and writes `path` whole or not at all (writeWhole), or
/// standard output for `-`. The bytes are written while a second thread
/// verifies. False, with the reason in `error`, where the program is refused or
/// the file cannot be written.
bool writeProgramFile(const ProgramT &program, const std::string &path,
                      std::string &error);

/// The program as JSON, for people and scripts: every field of the schema, with
/// enumerators spelled out and each instruction described in words.
std::string dumpJson(const ProgramT &program);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_FILE_H
