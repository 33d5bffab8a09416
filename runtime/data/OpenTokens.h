//===- OpenTokens.h - Opens texts and token files ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_OPENTOKENS_H
#define CHIMERA_RUNTIME_DATA_OPENTOKENS_H

#include "runtime/data/Tokens.h"

namespace chimera::runtime {

/// Opens one or more files. A text is one file or pipe. Throws
/// std::runtime_error if a file cannot be read, is neither a file nor a pipe,
/// is too long, or does not match `options.format`. A file does not match if it
/// has another known format (FileFormats.h), contradicts its header or index,
/// ends with a part of a token, or looks like wider numbers. With `Auto`, a
/// file without header and index must be a text, and the model's vocabulary
/// must have exactly 256 tokens.
std::unique_ptr<Tokens> openTokens(const std::vector<std::string> &files,
                                   const TokenOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_OPENTOKENS_H
