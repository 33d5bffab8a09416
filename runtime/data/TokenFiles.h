//===- TokenFiles.h - Files of tokens as plain numbers ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of little-endian numbers. Each call reads only the bytes that it needs.
// Files are not mapped into memory, so that a file that shrinks causes an error
// and not a signal.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_TOKENFILES_H
#define CHIMERA_RUNTIME_DATA_TOKENFILES_H

#include "runtime/data/FileFormats.h"
#include "runtime/data/Tokens.h"

#include <sys/stat.h>

namespace chimera::runtime {

/// Throws std::runtime_error: "cannot read the token file 'FILE': WHY". `kind`
/// is "text file" or "token file".
[[noreturn]] void failToRead(const char *kind, const std::string &path,
                             const std::string &why);

/// The status of a file or a pipe. Throws std::runtime_error for anything else.
struct stat statusOfData(const std::string &path);

/// Throws std::runtime_error if the file has another known format than the
/// assumed one. Requires a file and not a pipe.
void rejectKnownFormat(const std::string &path, AssumedFormat assumedFormat);

/// The bytes per token according to the file's index or header; 0 if the file
/// has neither. Throws std::runtime_error if the index or the header is
/// invalid.
uint32_t declaredTokenWidth(const std::string &path);

/// Opens files whose tokens have `width` bytes: 1, 2 or 4. Throws like
/// openTokens.
std::unique_ptr<Tokens> openTokenFiles(const std::vector<std::string> &files,
                                       uint32_t width,
                                       const TokenOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_TOKENFILES_H
