//===- ProvenFile.cpp - Program files that are proven ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ProvenFile.h"

#include "runtime/program/File.h"
#include "runtime/proof/Verify.h"

#include <future>

namespace chimera::program {

namespace {

/// The violations as text. A single violation is on the current line. If there
/// are several, each has its own line.
std::string linesOf(const std::vector<Violation> &violations) {
  if (violations.size() == 1)
    return " " + violations[0].message;
  std::string text;
  for (const Violation &violation : violations)
    text += "\n  " + violation.message;
  return text;
}

/// Whether verifyProgram accepts the program. If it does not, sets `error` to
/// the violations.
bool isProven(const ProgramT &program, std::string &error) {
  std::vector<Violation> violations = verifyProgram(program);
  if (!violations.empty())
    error = "refused:" + linesOf(violations);
  return violations.empty();
}

} // namespace

std::optional<ProgramT> readProgram(std::span<const std::byte> bytes,
                                    std::string &error) {
  std::optional<ProgramT> program = deserialize(bytes, error);
  if (!program || !isProven(*program, error))
    return std::nullopt;
  return program;
}

std::optional<ProgramT> readProgramFile(const std::string &path,
                                        std::string &error) {
  std::optional<ProgramT> program = deserializeFile(path, error);
  if (!program)
    return std::nullopt;
  if (!isProven(*program, error)) {
    error = path + ": " + error;
    return std::nullopt;
  }
  return program;
}

/// Sets the message model of the program to `model` and verifies the program.
/// `reason` is part of the error text: it says why the old message model is not
/// enough.
static bool proveFor(MessageModel model, ProgramT &program,
                     const std::string &path, const std::string &reason,
                     std::string &error) {
  const MessageModel before = program.message_model;
  program.message_model = model;
  std::vector<Violation> violations = verifyProgram(program);
  if (violations.empty())
    return true;
  error = path + ": refused: proven for " + nameOf(before) + " messages, but " +
          reason + ": compile it with --messages=" + nameOf(model) + "\n  " +
          violations.front().message;
  return false;
}

bool proveForRendezvous(ProgramT &program, const std::string &path,
                        std::string &error) {
  return program.message_model != MessageModel::Buffered ||
         proveFor(MessageModel::Rendezvous, program, path,
                  "here a send may wait for its receive", error);
}

bool proveForStreamPerDevice(ProgramT &program, const std::string &path,
                             std::string &error) {
  return program.message_model == MessageModel::StreamPerDevice ||
         proveFor(
             MessageModel::StreamPerDevice, program, path,
             "this transport executes all communication of a GPU in one order",
             error);
}

bool writeProgramFile(const ProgramT &program, const std::string &path,
                      std::string &error) {
  auto isAccepted = [&](const std::vector<Violation> &violations) {
    if (!violations.empty())
      error =
          path + ": not written, the program is refused:" + linesOf(violations);
    return violations.empty();
  };
  if (!hasAllTables(program))
    return isAccepted(verifyProgram(program));
  // Write while another thread verifies, because writing and verifying take
  // about the same time.
  std::future<std::vector<Violation>> verdict =
      std::async([&] { return verifyProgram(program); });
  return serializeFile(program, path, error,
                       [&] { return isAccepted(verdict.get()); });
}

} // namespace chimera::program
