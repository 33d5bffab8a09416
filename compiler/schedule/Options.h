//===- Options.h - What a scheme lets a user choose -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_OPTIONS_H
#define CHIMERA_COMPILER_SCHEDULE_OPTIONS_H

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::schedule {

/// A choice that a scheme leaves to its user: an integer, or one of some words.
/// Each scheme has a table of its own; error text, help, printers and tests
/// walk it.
struct Option {
  std::string_view name;
  std::string_view summary;
  std::string_view values; ///< what it may be, in words
  /// The value unless another is set: an integer, or the index of a word.
  int32_t otherwise;
  std::span<const std::string_view> words = {}; ///< none for an integer
};

/// The value of an option that is left open, "best" as a text: whoever makes
/// the plan chooses the one with which a step takes least time.
inline constexpr int32_t kBest = INT32_MIN;

/// The values of all options of one scheme's table, which must outlive them.
class Options {
public:
  /// Of a scheme that has none.
  Options() = default;
  /// What holds unless another value is set.
  explicit Options(std::span<const Option> table);

  std::span<const Option> table() const { return options; }
  /// Of the option at `index` of the table: the integer, or its word's index.
  int32_t operator[](size_t index) const { return values[index]; }
  void set(size_t index, int32_t value) { values[index] = value; }
  bool isSet(size_t index) const {
    return values[index] != options[index].otherwise;
  }
  bool isOpen(size_t index) const { return values[index] == kBest; }
  bool anyOpen() const { return std::ranges::count(values, kBest) > 0; }

  /// Sets the option `name` from `text`. Empty if that worked, else what is
  /// possible: an option that is not in the table, a text that is neither an
  /// integer of 32 bits nor a word where it should be one. Whether the value is
  /// possible for a request, its scheme says.
  std::string set(std::string_view name, std::string_view text);
  /// The text that `set` takes for the value of the option at `index`.
  std::string print(size_t index) const;

  bool operator==(const Options &other) const { return values == other.values; }

private:
  std::span<const Option> options;
  std::vector<int32_t> values; ///< by index
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_OPTIONS_H
