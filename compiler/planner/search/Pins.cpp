//===- Pins.cpp - Choices that the user fixes -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/Pins.h"

#include <algorithm>

namespace chimera::plan {

SchemeWithOptions withAnyOptions(const schedule::Scheme &scheme) {
  SchemeWithOptions pinned{&scheme, schedule::Options(scheme.options)};
  for (size_t i = 0; i < scheme.options.size(); ++i)
    pinned.options.set(i, schedule::kBest);
  return pinned;
}

namespace {

class SchemeReader {
public:
  explicit SchemeReader(std::string_view text) : rest(text) {}

  std::string run(std::vector<SchemeWithOptions> &schemes) {
    bool hasComma = true;
    while (hasComma) {
      std::string_view name = takeWord();
      if (name.empty())
        return "expected a schedule, such as 1f1b or chimera {pipelines = 4}" +
               gotRest();
      const schedule::Scheme *scheme = schedule::findScheme(name);
      if (!scheme)
        return "expected one of the schedules " + schedule::schemeNames() +
               ", got \"" + std::string(name) + "\"" +
               schedule::hintForUnknownScheme(name);
      SchemeWithOptions pinned = withAnyOptions(*scheme);
      // In a clause of chimera.pipeline, there is a comma before the options:
      // "chimera", {pipelines = 4}.
      hasComma = take(',');
      if (take('{')) {
        if (std::string error = readOptions(pinned); !error.empty())
          return "schedule " + std::string(name) + ": " + error;
        hasComma = take(',');
      }
      schemes.push_back(std::move(pinned));
    }
    if (!rest.empty())
      return "expected a comma between schedules" + gotRest();
    return {};
  }

private:
  /// Reads the options after an opening brace, and the closing brace.
  std::string readOptions(SchemeWithOptions &pinned) {
    std::vector<std::string_view> names;
    do {
      std::string_view name = takeWord();
      if (name.empty() || !take('='))
        return "expected {OPTION = VALUE, …}" + gotRest();
      if (std::ranges::count(names, name) > 0)
        return "expected " + std::string(name) + " once";
      names.push_back(name);
      if (std::string error = pinned.options.set(name, takeWord());
          !error.empty())
        return error;
      // MLIR prints integers with the type i64, so accept it.
      if (take(':') && takeWord() != "i64")
        return "expected no type but i64 after a value";
    } while (take(','));
    return take('}') ? "" : "expected , or } after an option" + gotRest();
  }

  void skipBlanks() {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  }

  bool take(char expected) {
    skipBlanks();
    if (!rest.starts_with(expected))
      return false;
    rest.remove_prefix(1);
    skipBlanks();
    return true;
  }

  /// The next word, quoted or not. Empty if there is none.
  std::string_view takeWord() {
    bool isQuoted = take('"');
    skipBlanks();
    size_t end = rest.find_first_of(isQuoted ? "\"" : "\"{},:= \t");
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(word.size());
    if (isQuoted)
      take('"');
    skipBlanks();
    return word;
  }

  std::string gotRest() const {
    return rest.empty() ? ", got nothing more"
                        : ", got \"" + std::string(rest) + "\"";
  }

  std::string_view rest;
};

} // namespace

std::string readSchemes(std::string_view text,
                        std::vector<SchemeWithOptions> &schemes) {
  return SchemeReader(text).run(schemes);
}

} // namespace chimera::plan
