//===- Tokens.h - A sequence of tokens in files -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Training data as one sequence of numbers. It is either the bytes of a text,
// or files that a tokenizer wrote, as little-endian numbers of 16 or 32 bits:
// - nanoGPT's files, which have only these numbers;
// - llm.c's files, which start with a header of 256 numbers;
// - Megatron's files, which have an index beside them (MegatronIndex.h).
//
// Several files of one kind form one sequence, in the given order.
//
// Token files are not read into memory as a whole: each call reads only the
// tokens that it needs. Token files are not mapped into memory either, so that
// a file that shrinks causes an error and not a signal.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_TOKENS_H
#define CHIMERA_RUNTIME_DATA_TOKENS_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A sequence of tokens. Any thread may call this.
class Tokens {
public:
  virtual ~Tokens() = default;
  virtual uint64_t count() const = 0;
  /// Fills `tokens` with the tokens from `first` on. Requires that they exist.
  /// Throws std::runtime_error if they cannot be read.
  virtual void read(uint64_t first, std::span<int64_t> tokens) const = 0;
  /// A digest of the tokens. For a text, it covers all bytes. For token files,
  /// it covers their lengths and evenly spaced blocks, since reading whole
  /// files could take too long.
  virtual uint64_t digest() const = 0;
  /// The names of the files, for messages.
  virtual std::string fileNames() const = 0;
  /// The place of a token, for messages: "token 3 of 'FILE'".
  virtual std::string describePosition(uint64_t token) const = 0;
  /// The largest number that a token can be, plus one. If a file's type is
  /// signed, values of tokenBound() or more represent negative numbers.
  virtual uint64_t tokenBound() const = 0;
  /// The number of tokens before the end of the document that contains `token`,
  /// according to the files; count() if the files do not state document ends.
  /// Throws like `read`.
  virtual uint64_t documentEnd(uint64_t token) const {
    (void)token;
    return count();
  }
  /// Whether any of the files states where its documents end.
  virtual bool statesDocuments() const { return false; }
  /// For each document, the index of the first token after it, ascending. The
  /// last index is count(). The end of a file is the end of a document too.
  /// Empty unless statesDocuments(). Throws like `read`.
  virtual std::vector<uint64_t> documentEnds() const { return {}; }
  /// Searches `count` tokens, from number `first` on. Returns the number of the
  /// first token that is at least `limit`, or none. Requires that these tokens
  /// exist. Throws like `read`.
  virtual std::optional<uint64_t> findAtLeast(uint64_t limit, uint64_t first,
                                              uint64_t count) const = 0;
};

/// The contents of the files. With `Auto`, the format is stated by an index
/// beside the file or by the file's header. A file with neither is a text if
/// the model's vocabulary has exactly 256 tokens. Otherwise it is rejected.
enum class TokenFormat { Auto, Bytes, UInt16, UInt32 };

/// The maximum size of a text, 4 GiB: every rank has all of it in memory.
inline constexpr uint64_t kMaxTextBytes = uint64_t{1} << 32;

struct TokenOptions {
  TokenFormat format = TokenFormat::Auto;
  uint64_t vocabulary = 0;            ///< of the model; 0 if not stated
  uint64_t mostBytes = kMaxTextBytes; ///< maximum size of a text
  /// If true, plain numbers are accepted as `format` without plausibility
  /// checks.
  bool trustPlainNumbers = false;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_TOKENS_H
