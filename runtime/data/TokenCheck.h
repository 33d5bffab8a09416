//===- TokenCheck.h - A check of all tokens before training -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A check of all tokens before the first step. A single token outside the
// vocabulary would end the run in the step that reads it, perhaps after days.
// The check is as fast as files can be read.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_TOKENCHECK_H
#define CHIMERA_RUNTIME_DATA_TOKENCHECK_H

#include "runtime/data/Tokens.h"

namespace chimera::runtime {

/// Tokens are valid if they are below this limit: the minimum of the vocabulary
/// and Tokens::tokenBound. `vocabulary` is 0 if the model does not state it.
uint64_t validTokenLimit(const Tokens &tokens, uint64_t vocabulary);

/// An error message for a token that is not below validTokenLimit: "expected
/// tokens of …, got 512 as token 3 of 'FILE'".
std::string invalidTokenMessage(const Tokens &tokens, uint64_t vocabulary,
                                uint64_t token, int64_t value);

/// Searches part `part` of `parts` equal parts for a token that is not below
/// validTokenLimit, with `threads` threads. Returns invalidTokenMessage of the
/// first such token, or an empty string. Reads nothing if the tokens' type
/// makes such a token impossible. Throws like Tokens::read.
std::string checkTokens(const Tokens &tokens, uint64_t vocabulary,
                        uint32_t threads, uint32_t part = 0,
                        uint32_t parts = 1);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_TOKENCHECK_H
