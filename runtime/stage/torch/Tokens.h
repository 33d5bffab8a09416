//===- Tokens.h - Sequences of tokens in files ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a model trains on, as one sequence of numbers: the bytes of a text, or
// files that a tokenizer wrote beforehand, as little-endian numbers of 16 or 32
// bits: nanoGPT's files, which have nothing else, and llm.c's, which begin with
// a header of 256 numbers. Several files of one kind are one sequence, in the
// order in which they are given.
//
// Token files are not read into memory: each call reads what it gives. (Nor are
// they mapped: a file that becomes shorter is an error then, not a signal.)
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TOKENS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TOKENS_H

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A sequence of tokens. Calls may come from any thread.
class Tokens {
public:
  virtual ~Tokens() = default;
  virtual uint64_t count() const = 0;
  /// Fills `tokens` with those from `first` on. Throws std::runtime_error where
  /// they cannot be read. Requires that there are so many.
  virtual void read(uint64_t first, std::span<int64_t> tokens) const = 0;
  /// Differs where the tokens do: of all of a text; of files too long for that,
  /// of their lengths and of blocks spread over them.
  virtual uint64_t digest() const = 0;
  /// The files, for people.
  virtual std::string where() const = 0;
  /// One more than the largest number that a token can be.
  virtual uint64_t bound() const = 0;
};

/// What files hold. `Auto`: what their first bytes say, llm.c's or a text.
enum class TokenFormat { Auto, Text, UInt16, UInt32 };

/// Opens `files`, of which there is one or more. A text is one file or pipe, of
/// at most `mostBytes`, for each rank has it in memory. Throws
/// std::runtime_error where one cannot be read, is of another kind, like a
/// device, is too long, or is not of the format.
std::unique_ptr<Tokens> openTokens(const std::vector<std::string> &files,
                                   TokenFormat format, uint64_t mostBytes);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TOKENS_H
