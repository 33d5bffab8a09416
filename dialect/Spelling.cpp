//===- Spelling.cpp - Words and numbers of descriptions -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Spelling.h"

#include "dialect/Decimal.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;

namespace chimera {

/// The longest text that begins at `begin` and whose characters all satisfy
/// `isPart`. Requires that the buffer ends with a 0.
template <typename IsPart>
static StringRef takeWhile(const char *begin, IsPart isPart) {
  const char *end = begin;
  while (isPart(*end))
    ++end;
  return {begin, static_cast<size_t>(end - begin)};
}

static const char *positionOf(AsmParser &parser) {
  return parser.getCurrentLocation().getPointer();
}

static bool isLetter(char c) { return llvm::isAlpha(c) || c == '_'; }

static bool isWordCharacter(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.';
}

/// Consumes the tokens of `text`, which begins at the parser's position. Fails,
/// without a diagnostic, if `text` does not end where a token ends.
static ParseResult skip(AsmParser &parser, StringRef text) {
  while (positionOf(parser) < text.end()) {
    const char *at = positionOf(parser);
    if (isLetter(*at)) {
      StringRef word;
      if (parser.parseOptionalKeyword(&word) || word.end() > text.end())
        return failure();
    } else if (*at == '+') {
      if (parser.parseOptionalPlus())
        return failure();
    } else {
      StringRef digits = takeWhile(at + (*at == '-'), llvm::isDigit);
      // Fail if a point comes after the digits, because a float token would end
      // after `text`. Fail if there is no digit, because an op parser cannot
      // read a minus alone.
      APInt number;
      if (digits.empty() || *digits.end() == '.')
        return failure();
      OptionalParseResult read = parser.parseOptionalInteger(number);
      if (!read.has_value() || failed(*read))
        return failure();
    }
  }
  return success();
}

/// Offers `words` as completions if an editor asks for them at the parser's
/// position. Requires that no word is next.
static void offerCompletions(AsmParser &parser, ArrayRef<StringRef> words) {
  StringRef none;
  (void)parser.parseOptionalKeyword(&none, words);
}

/// The text of the word at the parser's position. It may contain a minus, which
/// MLIR's lexer does not accept in a word.
static StringRef wordAt(AsmParser &parser) {
  return takeWhile(positionOf(parser),
                   [](char c) { return isWordCharacter(c) || c == '-'; });
}

ParseResult parseWord(AsmParser &parser, std::string &word,
                      ArrayRef<StringRef> known) {
  if (succeeded(parser.parseOptionalString(&word)))
    return success();
  SMLoc at = parser.getCurrentLocation();
  StringRef text = wordAt(parser);
  if (text.empty()) {
    offerCompletions(parser, known);
    return parser.emitError(at, "expected a word");
  }
  if (failed(skip(parser, text)))
    return parser.emitError(at, "expected quotes around ") << text;
  word = text.str();
  // If the next token begins directly after the word, it may be the request of
  // an editor for completions of this word.
  if (positionOf(parser) == text.end())
    offerCompletions(parser, known);
  return success();
}

/// The text of the number at `begin`. Empty if there is none.
static StringRef numberAt(const char *begin) {
  const char *end = begin;
  auto skipDigits = [&] {
    const char *first = end;
    while (llvm::isDigit(*end))
      ++end;
    return end > first;
  };
  end += *end == '-';
  if (end[0] == '0' && end[1] == 'x') {
    end += 2;
    while (llvm::isHexDigit(*end))
      ++end;
    return {begin, static_cast<size_t>(end - begin)};
  }
  if (!skipDigits())
    return {};
  if (*end == '.') {
    ++end;
    skipDigits();
  }
  if (*end == 'e' || *end == 'E') {
    const char *mantissa = end++;
    end += *end == '+' || *end == '-';
    if (!skipDigits())
      end = mantissa;
  }
  return {begin, static_cast<size_t>(end - begin)};
}

/// Reads a number and sets `text` to its text. Errors say that `kind` is
/// expected. A point is allowed if `mayHavePoint`, and letters after the number
/// if `mayHaveUnit`.
static ParseResult parseNumberText(AsmParser &parser, StringRef kind,
                                   bool mayHavePoint, StringRef &text,
                                   bool mayHaveUnit = false) {
  SMLoc at = parser.getCurrentLocation();
  text = numberAt(at.getPointer());
  // The lexer reads a leading point as the beginning of "..." and reports an
  // error. After an error of the lexer, MLIR does not print the parser's
  // diagnostics. So print this one directly.
  if (at.getPointer()[-1] == '.') {
    InFlightDiagnostic error = mlir::emitError(parser.getEncodedSourceLoc(at));
    StringRef digits = takeWhile(at.getPointer(), llvm::isDigit);
    if (mayHavePoint)
      return error << "expected a digit before the point: write 0." << digits;
    return error << "expected " << kind << ", got ." << digits;
  }
  if (text.empty()) {
    InFlightDiagnostic error = parser.emitError(at, "expected ") << kind;
    StringRef got = takeWhile(at.getPointer(), [](char c) {
      return isWordCharacter(c) || c == '-' || c == '+';
    });
    if (!got.empty())
      error << ", got " << got;
    return error;
  }
  StringRef whole = takeWhile(text.begin(), [](char c) {
    return isWordCharacter(c) || c == '-' || c == '+';
  });
  auto refuse = [&] {
    return parser.emitError(at, "expected ") << kind << ", got " << whole;
  };
  if (whole != text && !(mayHaveUnit && isLetter(*text.end())))
    return refuse();
  // A number with a point is a single float token, so consume only this token.
  if (text.contains('.')) {
    double ignored = 0;
    return parser.parseFloat(ignored);
  }
  return succeeded(skip(parser, text)) ? success() : refuse();
}

static bool isHexadecimal(StringRef text) {
  return text.ltrim('-').starts_with("0x");
}

ParseResult parseNumber(AsmParser &parser, double &value, bool mayHaveUnit) {
  SMLoc at = parser.getCurrentLocation();
  if (isHexadecimal(numberAt(at.getPointer())))
    return parser.parseFloat(value);
  StringRef text;
  if (parseNumberText(parser, "a number such as 1e-3 or 0.5",
                      /*mayHavePoint=*/true, text, mayHaveUnit))
    return failure();
  if (text.getAsDouble(value) || std::isinf(value))
    return parser.emitError(at, "expected a number below 1.8e308, got ")
           << text;
  StringRef mantissa =
      text.take_until([](char c) { return c == 'e' || c == 'E'; });
  if (value == 0 && mantissa.find_first_of("123456789") != StringRef::npos)
    return parser.emitError(at, "expected 0 or a number above 4.9e-324, got ")
           << text;
  return success();
}

ParseResult parseWholeNumber(AsmParser &parser, int64_t &value) {
  constexpr StringRef kKind = "a whole number of 64 bits";
  SMLoc at = parser.getCurrentLocation();
  if (isHexadecimal(numberAt(at.getPointer())))
    return parser.parseInteger(value);
  StringRef text;
  if (parseNumberText(parser, kKind, /*mayHavePoint=*/false, text))
    return failure();
  std::optional<Decimal> number = decimalOf(text);
  if (!number || !number->isWhole())
    return parser.emitError(at, "expected ") << kKind << ", got " << text;
  value = number->digits;
  return success();
}

StringRef bareWordAt(AsmParser &parser) {
  const char *at = positionOf(parser);
  return isLetter(*at) ? takeWhile(at, isWordCharacter) : StringRef();
}

StringRef mostSimilarWord(ArrayRef<StringRef> words, StringRef got) {
  StringRef nearest;
  unsigned least = got.size() + 1;
  for (StringRef word : words) {
    // A word is a possible typing error if at most about a third of the letters
    // differ.
    const size_t letters = (got.size() + word.size()) / 2;
    unsigned distance = got.edit_distance_insensitive(word);
    if (distance < least && distance <= (letters + 1) / 3) {
      least = distance;
      nearest = word;
    }
  }
  return nearest;
}

/// Fails with a diagnostic that lists `words` and suggests the one that is most
/// similar to `got`.
static ParseResult refuseWord(AsmParser &parser, SMLoc at, StringRef what,
                              ArrayRef<StringRef> words, StringRef got) {
  InFlightDiagnostic error = parser.emitError(at, "expected ") << what << " ";
  llvm::interleaveComma(words, error);
  // A word in quotes may contain control characters, which a terminal would
  // execute.
  std::string shown;
  llvm::raw_string_ostream os(shown);
  llvm::printEscapedString(got, os);
  error << ", got \"" << shown << "\"";
  if (StringRef nearest = mostSimilarWord(words, got); !nearest.empty())
    error << ": did you mean " << nearest << "?";
  return error;
}

ParseResult parseWordOf(AsmParser &parser, StringRef what,
                        ArrayRef<StringRef> words, std::string &word) {
  SMLoc at = parser.getCurrentLocation();
  // parseWord would tell the user to put quotes around a word with a minus.
  // This is no help if the word is not allowed in quotes either.
  if (StringRef text = wordAt(parser);
      text.contains('-') && !llvm::is_contained(words, text))
    return refuseWord(parser, at, what, words, text);
  if (parseWord(parser, word, words))
    return failure();
  return llvm::is_contained(words, word)
             ? success()
             : refuseWord(parser, at, what, words, word);
}

/// Reads a word that is not expected. If an editor asks for completions
/// directly after the word, offers `words`. Fails, without a diagnostic, if
/// there is no word.
static ParseResult parseOtherWord(AsmParser &parser, ArrayRef<StringRef> words,
                                  StringRef &word) {
  if (parser.parseOptionalKeyword(&word))
    return failure();
  if (positionOf(parser) == word.end())
    offerCompletions(parser, words);
  return success();
}

ParseResult parseRequiredWord(AsmParser &parser, StringRef word,
                              ArrayRef<StringRef> later) {
  if (succeeded(parser.parseOptionalKeyword(word)))
    return success();
  SMLoc at = parser.getCurrentLocation();
  StringRef other;
  bool isOther = succeeded(parseOtherWord(parser, word, other));
  InFlightDiagnostic error = parser.emitError(at, "expected '") << word << "'";
  if (isOther)
    error << ", got \"" << other << "\"";
  if (isOther && llvm::is_contained(later, other))
    error << ": " << word << " comes before " << other;
  return error;
}

OptionalParseResult parseOptionalWordOf(AsmParser &parser, StringRef what,
                                        ArrayRef<StringRef> words,
                                        StringRef &word) {
  if (succeeded(parser.parseOptionalKeyword(&word, words)))
    return success();
  StringRef other = bareWordAt(parser);
  // Such a word is not an error: it may begin other text that is allowed here
  // (attributes, a location or the next op).
  if (other.empty() || other.contains('.') || other == "attributes" ||
      other == "loc" ||
      RegisteredOperationName::lookup(("builtin." + other).str(),
                                      parser.getContext()))
    return std::nullopt;
  SMLoc at = parser.getCurrentLocation();
  // The parser does not see the word, because an editor asks for completions at
  // this place. The completions have been offered above.
  if (parseOtherWord(parser, words, word))
    return std::nullopt;
  return refuseWord(parser, at, what, words, word);
}

ParseResult parseFieldName(AsmParser &parser, ArrayRef<StringRef> names,
                           SmallVectorImpl<StringRef> &left, StringRef &name) {
  SMLoc at = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&name, left))) {
    if (parseOtherWord(parser, left, name))
      return parser.parseKeyword(&name);
    if (llvm::is_contained(names, name))
      return parser.emitError(at, "expected ") << name << " once";
    return refuseWord(parser, at, "one of the fields", names, name);
  }
  llvm::erase(left, name);
  return success();
}

} // namespace chimera
