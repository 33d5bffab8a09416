//===- Tokens.h - Sequences of tokens in files ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a model trains on, as one sequence of numbers: the bytes of a text, or
// files that a tokenizer wrote beforehand, as little-endian numbers of 16 or 32
// bits: nanoGPT's files, which have nothing else, llm.c's, which begin with a
// header of 256 numbers, and Megatron's, which have an index beside them
// (MegatronIndex.h). Several files of one kind are one sequence, in the order
// in which they are given.
//
// Token files are not read into memory: each call reads what it gives. (Nor are
// they mapped: a file that becomes shorter is an error then, not a signal.)
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TOKENS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TOKENS_H

#include <cstdint>
#include <memory>
#include <optional>
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
  /// The place of a token, for people: "token 3 of 'FILE'".
  virtual std::string placeOf(uint64_t token) const = 0;
  /// One more than the largest number that a token can be. What a file holds
  /// beyond it is a number below 0 of a type with a sign.
  virtual uint64_t bound() const = 0;
  /// How many tokens come before the end of the document that has the token, as
  /// far as the files say; count() if they say nothing. Throws like `read`.
  virtual uint64_t documentEnd(uint64_t token) const {
    (void)token;
    return count();
  }
  /// The first of the `count` tokens from `first` on that is not below `limit`.
  /// Throws like `read`, and requires the same.
  virtual std::optional<uint64_t> findBeyond(uint64_t limit, uint64_t first,
                                             uint64_t count) const = 0;
};

/// What files hold. `Auto`: what an index beside them or their first bytes say,
/// else, for a model of 256 tokens alone, a text.
enum class TokenFormat { Auto, Bytes, UInt16, UInt32 };

/// Every rank has the whole of a text in memory: 4 GiB.
inline constexpr uint64_t kMostTextBytes = uint64_t{1} << 32;

struct TokenOptions {
  TokenFormat format = TokenFormat::Auto;
  uint64_t vocabulary = 0;             ///< of the model; 0: it does not say
  uint64_t mostBytes = kMostTextBytes; ///< of a text
  /// Whether plain numbers are what the format says, however they look.
  bool areTrusted = false;
};

/// Opens `files`, of which there is one or more. A text is one file or pipe.
/// Throws std::runtime_error if a file cannot be read, is of another kind, like
/// a device, is too long, or is not of the format: is of another that is known
/// (FileFormats.h), contradicts its header or index, has half a token, looks
/// like wider numbers or, with `Auto`, is no text, or none for the model.
std::unique_ptr<Tokens> openTokens(const std::vector<std::string> &files,
                                   const TokenOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TOKENS_H
