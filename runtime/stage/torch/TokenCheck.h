//===- TokenCheck.h - Whether all tokens are the model's --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One token beyond the vocabulary would end a run in the step that draws it,
// and that may be after days. So all tokens are looked at before the first
// step, as fast as files can be read.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TOKENCHECK_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TOKENCHECK_H

#include "runtime/stage/torch/Tokens.h"

namespace chimera::runtime {

/// The tokens that a model has: those below its vocabulary and below what the
/// tokens' own type allows. `vocabulary` 0: the model does not say.
uint64_t limitOf(const Tokens &tokens, uint64_t vocabulary);

/// "expected tokens of …, got 512 as token 3 of 'FILE'": about a token that is
/// not below limitOf.
std::string faultOf(const Tokens &tokens, uint64_t vocabulary, uint64_t token,
                    int64_t value);

/// Looks for a token that is not below limitOf in the `part`-th of `parts`
/// equal parts, by `threads` threads. Returns the faultOf the first one, empty
/// if there is none. Reads nothing if the tokens' type allows no such. Throws
/// as Tokens::read does.
std::string checkTokens(const Tokens &tokens, uint64_t vocabulary,
                        uint32_t threads, uint32_t part = 0,
                        uint32_t parts = 1);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TOKENCHECK_H
