//===- ProvenFile.h - Program files that are proven -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that read and write program files and verify the program. The
// compiler writes all programs with these functions, and the runtime reads all
// programs with them.
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

/// Converts the bytes of a program file to a program. Returns none, with the
/// reason in `error`, if deserialize fails or if verifyProgram finds
/// violations. If there are several violations, each has one line.
std::optional<ProgramT> readProgram(std::span<const std::byte> bytes,
                                    std::string &error);

/// Like readProgram, for the file at `path`. `error` names the path.
std::optional<ProgramT> readProgramFile(const std::string &path,
                                        std::string &error);

/// Makes sure that a program is proven for transports on which a send may wait
/// for its receive. All transports of this runtime may do this. If the program
/// was proven for buffered messages, sets its message model to rendezvous and
/// verifies it again. A program with another model needs no new proof. `path`
/// is the file from which the program was read. Returns false, with a violation
/// in `error`, if the program is refused.
bool proveForRendezvous(ProgramT &program, const std::string &path,
                        std::string &error);

/// Makes sure that a program is proven for transports that may execute all
/// communication of a device one after another, for example NCCL. If the
/// program was proven for another model, sets its message model to
/// stream-per-device and verifies it again. `path` is the file from which the
/// program was read. Returns false, with a violation in `error`, if the program
/// is refused.
bool proveForStreamPerDevice(ProgramT &program, const std::string &path,
                             std::string &error);

/// Verifies the program and writes it to `path`, completely or not at all, or
/// to standard output if `path` is `-`. One thread verifies the program while
/// another thread writes it. Returns false, with the reason in `error`, if the
/// program is refused or the file cannot be written.
bool writeProgramFile(const ProgramT &program, const std::string &path,
                      std::string &error);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROOF_PROVENFILE_H
