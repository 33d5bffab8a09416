//===- ProvenFile.h - Program files that are proven -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Program files that verifyProgram accepts: reading and writing. Compilers
// write and runtimes read all programs through these functions.
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

/// Returns the program in `bytes`. Fails if deserialize fails or if
/// verifyProgram finds violations. In the second case `error` has all
/// violations, one a line if there are several.
std::optional<ProgramT> readProgram(std::span<const std::byte> bytes,
                                    std::string &error);

/// Calls readProgram for the file at `path`; `error` names the path.
std::optional<ProgramT> readProgramFile(const std::string &path,
                                        std::string &error);

/// Proves a program that was read from `path` for transports on which a send
/// may wait for its receive. All transports of this runtime are like that. If
/// the program was proven for buffered messages, it is verified again under the
/// model rendezvous, and then marked as proven for rendezvous. Any other
/// program needs no new proof. Returns false, with a violation in `error`, if
/// the program is refused.
bool proveForRendezvous(ProgramT &program, const std::string &path,
                        std::string &error);

/// Proves a program that was read from `path` for a transport that executes all
/// communication of a device in one order. NCCL promises no more than this. The
/// program is then marked as proven for stream-per-device. Returns false, with
/// a violation in `error`, if it is refused.
bool proveForStreamPerDevice(ProgramT &program, const std::string &path,
                             std::string &error);

/// Proves the program and writes it to `path`, completely or not at all, or to
/// standard output if `path` is `-`. One thread proves it while another writes
/// it. Returns false, with the reason in `error`, if the program is refused or
/// the file cannot be written.
bool writeProgramFile(const ProgramT &program, const std::string &path,
                      std::string &error);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROOF_PROVENFILE_H
