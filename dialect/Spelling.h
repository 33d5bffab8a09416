//===- Spelling.h - How words and numbers are written -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How people write the words and numbers of a description, which is more than
// MLIR's lexer knows: 1e-3 is two tokens to it and 1f1b too. What is read here
// may be several tokens with nothing between them.
//
// All functions fail with a diagnostic that says what is expected. At a code
// completion they offer what is possible, also for a word that has been begun,
// and fail.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_SPELLING_H
#define CHIMERA_DIALECT_SPELLING_H

#include "dialect/Quantity.h"

#include "mlir/IR/OpImplementation.h"

#include <string>

namespace chimera {

/// Reads a word, bare or quoted: gpt2, 1f1b, "fine-tuned-doubling". `known` are
/// those to offer as completions; others are read too.
mlir::ParseResult parseWord(mlir::AsmParser &parser, std::string &word,
                            llvm::ArrayRef<llvm::StringRef> known = {});

/// Reads a number: 0, -2.5, 1e-3, or the bits of one, 0x7FF0000000000000. A
/// unit may stand straight behind it where `mayHaveUnit`.
mlir::ParseResult parseNumber(mlir::AsmParser &parser, double &value,
                              bool mayHaveUnit = false);

/// Reads a whole number of 64 bits: 4, -7, 40e9, 1.5e3.
mlir::ParseResult parseWholeNumber(mlir::AsmParser &parser, int64_t &value);

/// A number inside of < >.
struct NumberField {
  llvm::StringRef name;
  int64_t *value;
  bool required = true;
  /// What it counts, where it may have a unit.
  std::optional<Dimension> dimension = {};
  /// Null, or told whether it has one.
  bool *hasUnit = nullptr;
};

/// Reads <name = number, …>, in any order. Fields that are not required keep
/// what they have.
mlir::ParseResult parseNumberFields(mlir::AsmParser &parser,
                                    llvm::ArrayRef<NumberField> fields);

/// Reads one of `words`, bare or quoted. Fails with "expected WHAT a, b, c"
/// where it is none of them.
mlir::ParseResult parseWordOf(mlir::AsmParser &parser, llvm::StringRef what,
                              llvm::ArrayRef<llvm::StringRef> words,
                              std::string &word);

/// Reads the bare word `word`, which must be next.
mlir::ParseResult parseWordHere(mlir::AsmParser &parser, llvm::StringRef word);

/// Reads one of `words`, bare, or nothing. Fails with "expected WHAT a, b, c"
/// where another word is next that nothing else begins with.
mlir::OptionalParseResult
parseOptionalWordOf(mlir::AsmParser &parser, llvm::StringRef what,
                    llvm::ArrayRef<llvm::StringRef> words,
                    llvm::StringRef &word);

/// Which of `words` a slip in typing made `got` of, in either case; empty if
/// none is near.
llvm::StringRef nearestOf(llvm::ArrayRef<llvm::StringRef> words,
                          llvm::StringRef got);

/// The bare word at which the parser is, empty if it is at something else.
llvm::StringRef bareWordAt(mlir::AsmParser &parser);

} // namespace chimera

#endif // CHIMERA_DIALECT_SPELLING_H
