//===- Spelling.h - Words and numbers of descriptions -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsers of the words and numbers of a description. MLIR's lexer splits some
// of them: 1e-3 and 1f1b are two tokens each. The parsers here read several
// tokens with nothing between them as one word or number.
//
// If a parser fails, its diagnostic says what is expected. If an editor asks
// for completions at the parser's position, the parsers offer the possible
// words (even if a word has been begun) and fail.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_SPELLING_H
#define CHIMERA_DIALECT_SPELLING_H

#include "mlir/IR/OpImplementation.h"

#include <string>

namespace chimera {

/// Reads a word, with or without quotes: gpt2, 1f1b, "fine-tuned-doubling".
/// Completions offer the words `known`; other words are accepted too.
mlir::ParseResult parseWord(mlir::AsmParser &parser, std::string &word,
                            llvm::ArrayRef<llvm::StringRef> known = {});

/// Reads a number: 0, -2.5, 1e-3, or the bits of a double, 0x7FF0000000000000.
/// If `mayHaveUnit`, a unit may follow the number directly.
mlir::ParseResult parseNumber(mlir::AsmParser &parser, double &value,
                              bool mayHaveUnit = false);

/// Reads a whole number of 64 bits: 4, -7, 40e9, 1.5e3.
mlir::ParseResult parseWholeNumber(mlir::AsmParser &parser, int64_t &value);

/// Reads one of `words`, with or without quotes. Fails with "expected WHAT a,
/// b, c" if the next word is none of them.
mlir::ParseResult parseWordOf(mlir::AsmParser &parser, llvm::StringRef what,
                              llvm::ArrayRef<llvm::StringRef> words,
                              std::string &word);

/// Reads the name of a field and removes it from `left`, the names that have
/// not been given yet. `names` has all names. Fails if no name of `left` is
/// next.
mlir::ParseResult parseFieldName(mlir::AsmParser &parser,
                                 llvm::ArrayRef<llvm::StringRef> names,
                                 llvm::SmallVectorImpl<llvm::StringRef> &left,
                                 llvm::StringRef &name);

/// Reads `word`, without quotes. Fails if another word or none is next. If the
/// next word is one of `later`, the diagnostic says that `word` comes first.
mlir::ParseResult parseRequiredWord(mlir::AsmParser &parser,
                                    llvm::StringRef word,
                                    llvm::ArrayRef<llvm::StringRef> later = {});

/// Reads one of `words`, without quotes. Reads nothing if the next word can
/// begin the text after the clauses (attributes, a location or the next op), or
/// if no word is next. Fails with "expected WHAT a, b, c" if any other word is
/// next.
mlir::OptionalParseResult
parseOptionalWordOf(mlir::AsmParser &parser, llvm::StringRef what,
                    llvm::ArrayRef<llvm::StringRef> words,
                    llvm::StringRef &word);

/// The word of `words` that is most similar to `got`, ignoring case. Empty if
/// no word is so similar that `got` may be a typing error.
llvm::StringRef mostSimilarWord(llvm::ArrayRef<llvm::StringRef> words,
                                llvm::StringRef got);

/// The word, without quotes, at the parser's position. Empty if there is none.
llvm::StringRef bareWordAt(mlir::AsmParser &parser);

} // namespace chimera

#endif // CHIMERA_DIALECT_SPELLING_H
