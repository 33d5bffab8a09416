//===- TokenFiles.h - Tokens as plain numbers -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of little-endian numbers. They are not read into memory: each call
// reads what it gives. (Nor are they mapped: a file that becomes shorter is an
// error then, not a signal.)
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TOKENFILES_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TOKENFILES_H

#include "runtime/stage/torch/FileFormats.h"
#include "runtime/stage/torch/Tokens.h"

#include <sys/stat.h>

namespace chimera::runtime {

/// Throws std::runtime_error: "cannot read the token file 'FILE': WHY". `kind`
/// is "text file" or "token file".
[[noreturn]] void failToRead(const char *kind, const std::string &path,
                             const std::string &why);

/// The status of a file or a pipe. Throws std::runtime_error for anything else.
struct stat statusOfData(const std::string &path);

/// Throws std::runtime_error if the file has a known format, in place of what
/// it was taken for. Not for pipes.
void refuseKnownFormat(const std::string &path, TakenFor takenFor);

/// The bytes of a token by the file's index or header; 0 if it has neither.
/// Throws std::runtime_error if what they say cannot be.
uint32_t widthSaidBy(const std::string &path);

/// Opens files of tokens of `width` bytes: 1, 2 or 4. Throws as openTokens
/// does.
std::unique_ptr<Tokens> openTokenFiles(const std::vector<std::string> &files,
                                       uint32_t width,
                                       const TokenOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TOKENFILES_H
