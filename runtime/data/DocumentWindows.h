//===- DocumentWindows.h - Windows within documents -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The windows of a part of a token sequence, none of which crosses the end of a
// document. A document of s tokens has floor((s - 1) / context) windows of
// `context` tokens, one after another, because the label of a window's last
// token is the document's next token. So a document of at most `context` tokens
// has none. The rest of a document, at most `context` - 1 tokens, is before its
// first window or after its last one.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_DOCUMENTWINDOWS_H
#define CHIMERA_RUNTIME_DATA_DOCUMENTWINDOWS_H

#include "runtime/data/TokenSamples.h"
#include "runtime/data/Tokens.h"

#include <cstdint>
#include <span>
#include <vector>

namespace chimera::runtime {

/// The numbers of the tokens after the end of each document, ascending. The
/// last one is tokens.count(). Documents end where the files say so and, if
/// `mark` is given, after each token `mark`; in that case, this reads all
/// tokens. Throws std::runtime_error if the files state no documents and `mark`
/// is not given, and like Tokens::read.
std::vector<uint64_t> findDocumentEnds(const Tokens &tokens,
                                       std::optional<int64_t> mark);

class DocumentWindows {
public:
  /// The windows of the tokens in `part`. `ends` is the result of
  /// findDocumentEnds. If a document is only partly in `part`, that part is a
  /// document. Takes 24 bytes of memory for each document with windows.
  DocumentWindows(std::span<const uint64_t> ends, TokenRange part,
                  uint64_t context);

  uint64_t count() const { return total; }
  /// The first token of window number `window`. The first window of a document
  /// begins at the document's first token.
  uint64_t startOf(uint64_t window) const;
  /// The same for an epoch of training. If the windows of a document leave a
  /// rest of r tokens, the document's first window begins at its token number
  /// mix(seed, kFirstWindow, epoch, number of the document's first token)
  /// modulo (r + 1).
  uint64_t startOf(uint64_t window, uint64_t seed, uint64_t epoch) const;
  /// A digest of all documents with windows.
  uint64_t digest() const;

private:
  struct Document {
    uint64_t firstWindow; ///< the number of its first window
    uint64_t first;       ///< the number of its first token
    uint64_t places;      ///< tokens at which its first window may begin
  };
  const Document &documentOf(uint64_t window) const;

  std::vector<Document> documents; ///< those with windows
  uint64_t context;
  uint64_t total = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_DOCUMENTWINDOWS_H
