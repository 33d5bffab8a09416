//===- Options.cpp - The options of a scheme ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Options.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace chimera::schedule {

Options::Options(std::span<const Option> table) : options(table) {
  for (const Option &option : table)
    values.push_back(option.defaultValue);
}

static constexpr const char *kBestText = "best";

/// The value of `option` in `text`, or nothing if `text` is none of its values.
static std::optional<int32_t> parse(const Option &option,
                                    std::string_view text) {
  if (text == kBestText)
    return kBest;
  if (!option.words.empty()) {
    auto at = std::ranges::find(option.words, text);
    if (at == option.words.end())
      return std::nullopt;
    return static_cast<int32_t>(at - option.words.begin());
  }
  int32_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::string Options::set(std::string_view name, std::string_view text) {
  auto at = std::ranges::find(options, name, &Option::name);
  if (at == options.end()) {
    std::string names;
    for (const Option &option : options)
      names += (names.empty() ? "" : ", ") + std::string(option.name);
    return (names.empty() ? "expected no options"
                          : "expected one of the options " + names) +
           ", got \"" + std::string(name) + "\"";
  }
  std::optional<int32_t> value = parse(*at, text);
  if (!value)
    return "expected " + std::string(name) + " to be " +
           std::string(at->values) + ", or best, got \"" + std::string(text) +
           "\"";
  set(at - options.begin(), *value);
  return {};
}

std::string Options::print(size_t index) const {
  const Option &option = options[index];
  if (isOpen(index))
    return kBestText;
  if (option.words.empty())
    return std::to_string(values[index]);
  return std::string(option.words[values[index]]);
}

} // namespace chimera::schedule
