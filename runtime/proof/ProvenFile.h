//===- ProvenFile.h - Program files that are proven -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes program files that verifyProgram accepts, and no others:
// what compilers write and runtimes run.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_PROVENFILE_H
#define CHIMERA_RUNTIME_PROOF_PROVENFILE_H

#include "runtime/program/Program.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace chimera::program {

/// The program in `bytes`. Fails where deserialize does, and where
/// verifyProgram finds a violation: `error` then holds every violation, a line
/// each where there are several.
std::optional<ProgramT> readProgram(std::span<const std::byte> bytes,
                                    std::string &error);

/// readProgram of the file at `path`, which `error` names.
std::optional<ProgramT> readProgramFile(const std::string &path,
                                        std::string &error);

/// Proves a program that was read from `path` for transports where a send may
/// wait for its receive, as all of this runtime do. Only one that was proven
/// for buffered messages needs that: it is then recorded as proven for
/// rendezvous. False, with a violation in `error`, where it is refused.
bool proveForRendezvous(ProgramT &program, const std::string &path,
                        std::string &error);

/// Proves a program that was read from `path` for a transport that moves
/// everything of a device in one order, as NCCL is sure to. It is then recorded
/// as proven for that. False, with a violation in `error`, where it is refused.
bool proveForOneOrder(ProgramT &program, const std::string &path,
                      std::string &error);

/// Proves the program and writes it to `path` whole or not at all, or to
/// standard output for `-`. A second thread proves it while this one writes.
/// False, with the reason in `error`, where the program is refused or the file
/// cannot be written.
bool writeProgramFile(const ProgramT &program, const std::string &path,
                      std::string &error);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROOF_PROVENFILE_H
