//===- Expression.cpp - A pipeline in one line ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/describe/Expression.h"

#include "compiler/planner/search/Pins.h"
#include "compiler/schedule/MakePlan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

namespace chimera {

namespace {

/// A clause of an expression, such as stages=4. Without a value if it has no
/// `=`.
struct ExpressionWord {
  std::string_view name;
  std::optional<std::string_view> value;
};

bool has(std::string_view set, char c) { return set.find(c) != set.npos; }

/// Splits `text` at each character of `separators` that is outside of brackets
/// and quotes. Empty parts are left out. Returns nothing if brackets or quotes
/// do not match.
std::optional<std::vector<std::string_view>> cut(std::string_view text,
                                                 std::string_view separators) {
  static constexpr std::string_view kOpen = "({[<", kClosed = ")}]>";
  std::vector<std::string_view> parts;
  std::string open;
  bool isQuoted = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool isEnd = i == text.size();
    if (!isEnd && text[i] == '"')
      isQuoted = !isQuoted;
    if (!isEnd && isQuoted)
      continue;
    if (isEnd || (open.empty() && has(separators, text[i]))) {
      if (i > begin)
        parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
      continue;
    }
    if (has(kOpen, text[i]))
      open += text[i];
    if (size_t kind = kClosed.find(text[i]); kind != kClosed.npos) {
      if (open.empty() || open.back() != kOpen[kind])
        return std::nullopt;
      open.pop_back();
    }
  }
  if (isQuoted || !open.empty())
    return std::nullopt;
  return parts;
}

constexpr char kBlanks[] = " \t\n";

std::string_view trimmed(std::string_view text) {
  size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos)
    return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// Makes the text of a module. `add` appends the pipelines of one expression.
class Describer {
public:
  Describer(std::string &error, std::string *impossible)
      : error(error), impossible(impossible) {}

  bool add(std::string_view expression) {
    if (!readWords(expression))
      return false;
    if (schedules.empty())
      return fail("expected a schedule, such as schedule=1f1b: one of " +
                  schedule::schemeNames());
    for (std::string_view text : schedules)
      if (!addPipeline(trimmed(text)))
        return false;
    return true;
  }

  ExpressionModule take() { return std::move(module); }

private:
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }

  bool readWords(std::string_view expression) {
    words.clear();
    schedules.clear();
    allNames.clear();
    stages = workers = microBatches = 0;
    std::optional<std::vector<std::string_view>> parts =
        cut(joinLists(expression), kBlanks);
    if (!parts)
      return fail("expected each bracket and quote to be closed, got \"" +
                  std::string(expression) + "\"");
    for (std::string_view part : *parts) {
      size_t equals = part.find('=');
      ExpressionWord word{part.substr(0, equals), std::nullopt};
      if (equals != part.npos)
        word.value = part.substr(equals + 1);
      allNames.push_back(word.name);
      if (!readWord(word))
        return false;
    }
    if (stages == 0 && workers == 0)
      return fail("expected stages=NUMBER or workers=NUMBER" + gotNames());
    if (microBatches == 0)
      return fail("expected micro_batches=NUMBER" + gotNames());
    return true;
  }

  /// The end of an error message if a clause is missing (it may be misspelt):
  /// ", got only " and the names of all words of the expression. Empty if the
  /// expression has no words.
  std::string gotNames() const {
    std::string names;
    for (std::string_view name : allNames)
      names += (names.empty() ? ", got only " : ", ") + std::string(name);
    return names;
  }

  /// `expression` without the blanks that do not separate words: blanks next to
  /// a comma or an equals sign, and blanks before an opening brace.
  std::string_view joinLists(std::string_view expression) {
    joined.clear();
    for (size_t i = 0; i < expression.size(); ++i) {
      if (has(kBlanks, expression[i])) {
        size_t next = expression.find_first_not_of(kBlanks, i);
        bool joins = next == expression.npos || joined.empty() ||
                     has(",=", joined.back()) || has(",={", expression[next]);
        if (!joins)
          joined += ' ';
        i = std::min(next, expression.size()) - 1;
        continue;
      }
      joined += expression[i];
    }
    return joined;
  }

  bool readWord(const ExpressionWord &word) {
    if (word.name == "schedule") {
      if (!schedules.empty())
        return fail("expected schedule once, with a comma between schedules");
      std::optional<std::vector<std::string_view>> list =
          cut(word.value.value_or(""), ",");
      schedules = std::move(*list); // readWords has checked that brackets match
      return true;
    }
    if (!word.value && schedule::findScheme(word.name))
      return fail("expected a comma between schedules, as in schedule=1f1b,"
                  "zb-v, got a blank before " +
                  std::string(word.name));
    if (word.name == "link" && !word.value.value_or("").starts_with('<'))
      return fail("expected link=<latency = NUMBER, …>, got " +
                  std::string(word.value.value_or("none")));
    if (word.name == "of" || word.name == "with" || word.name == "on")
      return fail("expected no " + std::string(word.name) +
                  ": only a pipeline in a file has a model, a training or a "
                  "machine");
    const bool isFlag = word.name == "split_backward";
    if (word.name == "recompute" && !word.value)
      return fail(
          "expected recompute=all, recompute=[0,2] (stages 0 and 2), or "
          "recompute=(all fused), got recompute without a value");
    if (!isFlag && !word.value && word.name.find('(') == word.name.npos)
      return fail("expected NAME=VALUE, got " + std::string(word.name) +
                  " without a value");
    if (isFlag && word.value)
      return fail("expected " + std::string(word.name) +
                  " without a value, got =" + std::string(*word.value));
    for (auto [name, number] :
         {std::pair<std::string_view, int32_t &>{"stages", stages},
          {"workers", workers},
          {"micro_batches", microBatches}})
      if (word.name == name)
        return readNumber(word, number);
    words.push_back(word);
    return true;
  }

  bool readNumber(const ExpressionWord &word, int32_t &number) {
    if (number > 0)
      return fail("expected " + std::string(word.name) + " once");
    std::string_view text = word.value.value_or("");
    auto [end, code] =
        std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size() || number < 1 ||
        number > UINT16_MAX)
      return fail("expected " + std::string(word.name) +
                  "=NUMBER, from 1 to 65535, got \"" + std::string(text) +
                  "\"" + (has(text, ',') ? ": blanks separate clauses" : ""));
    return true;
  }

  schedule::Request requestOf(const plan::SchemeWithOptions &scheme,
                              int32_t stageCount, int32_t workerCount) const {
    schedule::Request request;
    request.workers = workerCount;
    request.stages.resize(stageCount);
    request.microBatches = microBatches;
    request.options = scheme.options;
    return request;
  }

  /// The numbers of stages and workers for `scheme`. The expression states at
  /// least one of them. If it states only one, the other follows from the
  /// scheme's usual number of stages per worker. If that is impossible, it
  /// follows from the smallest number of stages per worker, from 1 to 8, that
  /// is possible. If none is possible, both numbers are equal.
  std::pair<int32_t, int32_t>
  sizesFor(const plan::SchemeWithOptions &scheme) const {
    if (stages > 0 && workers > 0)
      return {stages, workers};
    constexpr int32_t kMostStages = 8; // per worker
    for (int32_t i = 0; i <= kMostStages; ++i) {
      int32_t each = i == 0 ? scheme.scheme->stagesPerWorker : i;
      if (stages % each != 0)
        continue;
      std::pair sizes(workers > 0 ? workers * each : stages,
                      workers > 0 ? workers : stages / each);
      if (schedule::planError(*scheme.scheme,
                              requestOf(scheme, sizes.first, sizes.second))
              .empty())
        return sizes;
    }
    int32_t number = std::max(stages, workers);
    return {number, number};
  }

  bool addPipeline(std::string_view text) {
    if (size_t round = text.find('('); round < text.find('{'))
      return fail("expected a schedule's options in braces, as in chimera"
                  "{pipelines = 4}, got " +
                  std::string(text));
    std::vector<plan::SchemeWithOptions> read;
    if (std::string fault = plan::readSchemes(text, read); !fault.empty())
      return fail(fault);
    const plan::SchemeWithOptions &scheme = read.front();
    auto [stageCount, workerCount] = sizesFor(scheme);
    if (std::string fault = schedule::planError(
            *scheme.scheme, requestOf(scheme, stageCount, workerCount));
        !fault.empty()) {
      fault = "schedule " + std::string(text) + ": " + fault;
      if (!impossible)
        return fail(fault);
      *impossible += "(" + fault + ")\n";
      return true;
    }
    std::string name = scheme.scheme->name;
    if (int32_t number = ++names[name]; number > 1)
      name += "_" + std::to_string(number);
    const size_t brace = text.find('{');
    const std::string options =
        brace == text.npos ? "" : ", " + std::string(text.substr(brace));
    const std::string scheduleWord = "schedule=" + std::string(text);
    beginLine("chimera.pipeline @\"" + name + "\"", scheduleWord);
    append("stages(" + std::to_string(stageCount) + ")",
           "stages=" + std::to_string(stageCount));
    append("micro_batches(" + std::to_string(microBatches) + ")",
           "micro_batches=" + std::to_string(microBatches));
    append(std::string("schedule(\"") + scheme.scheme->name + "\"" + options +
               ")",
           scheduleWord);
    if (workerCount != stageCount)
      append("workers(" + std::to_string(workerCount) + ")",
             "workers=" + std::to_string(workerCount));
    for (const ExpressionWord &word : words)
      append(clauseOf(word), textOf(word));
    module.text += "\n";
    return true;
  }

  static std::string textOf(const ExpressionWord &word) {
    return std::string(word.name) +
           (word.value ? "=" + std::string(*word.value) : "");
  }

  /// The clause of chimera.pipeline that `word` means.
  static std::string clauseOf(const ExpressionWord &word) {
    std::string name(word.name);
    if (!word.value)
      return name;
    // A value in angle brackets, as in link=<latency = 3>, is written without
    // parentheses.
    std::string value(*word.value);
    return value.starts_with('<')   ? name + " " + value
           : value.starts_with('(') ? name + value
                                    : name + "(" + value + ")";
  }

  /// Begins a line of the module with `text`, which is made from `word`.
  void beginLine(const std::string &text, const std::string &word) {
    ++line;
    lineBegin = module.text.size();
    module.words.push_back({line, 1, word});
    module.text += text;
  }

  /// Appends a blank and `text`, which is made from `word`, to the line.
  void append(const std::string &text, const std::string &word) {
    module.text += " ";
    module.words.push_back({line, module.text.size() - lineBegin + 1, word});
    module.text += text;
  }

  std::string &error;
  std::string *impossible;
  ExpressionModule module;
  size_t line = 0, lineBegin = 0; ///< number and offset of the last line
  std::string joined;
  std::map<std::string, int32_t> names;
  std::vector<ExpressionWord> words;
  std::vector<std::string_view> schedules, allNames;
  int32_t stages = 0, workers = 0, microBatches = 0; ///< 0 if not given
};

} // namespace

std::string ExpressionModule::wordAt(size_t line, size_t column) const {
  auto after = std::ranges::upper_bound(
      words, std::pair(line, column), {},
      [](const Word &word) { return std::pair(word.line, word.column); });
  if (after == words.begin() || std::prev(after)->line != line)
    return {};
  return std::prev(after)->word;
}

std::optional<ExpressionModule>
describeExpressions(std::span<const std::string> expressions,
                    std::string &error, std::string *impossible) {
  Describer describer(error, impossible);
  for (const std::string &expression : expressions)
    if (!describer.add(expression))
      return std::nullopt;
  ExpressionModule module = describer.take();
  if (module.text.empty() && impossible) {
    error = *impossible;
    return std::nullopt;
  }
  return module;
}

} // namespace chimera
