//===- Options.h - The options of a scheme ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_OPTIONS_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_OPTIONS_H

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::schedule {

/// A choice that a scheme offers to its user: an integer, or one of several
/// words. Each scheme has its own table of options, which error messages, help
/// text, printers and tests read.
struct Option {
  std::string_view name;
  std::string_view summary;
  std::string_view values; ///< the possible values, as text
  /// The default value: an integer, or the index of a word.
  int32_t defaultValue;
  std::span<const std::string_view> words = {}; ///< empty if the value is an
                                                ///< integer
};

/// The value of an open option, written "best". When the plan is made, the
/// value with the shortest step is chosen (MakePlan.h).
inline constexpr int32_t kBest = INT32_MIN;

/// The values of all options in the table of one scheme. Keeps a reference to
/// the table.
class Options {
public:
  /// An empty table.
  Options() = default;
  /// Sets each option to its default value.
  explicit Options(std::span<const Option> table);

  std::span<const Option> table() const { return options; }
  /// The value of the option at `index` of the table: the integer, or the index
  /// of its word.
  int32_t operator[](size_t index) const { return values[index]; }
  void set(size_t index, int32_t value) { values[index] = value; }
  bool isSet(size_t index) const {
    return values[index] != options[index].defaultValue;
  }
  bool isOpen(size_t index) const { return values[index] == kBest; }
  bool anyOpen() const { return std::ranges::count(values, kBest) > 0; }

  /// Sets the option `name` to the value in `text`. Returns an empty string, or
  /// a text that says what is possible. Fails if the table has no such option,
  /// or if `text` is not one of its words, or not a 32-bit integer. The scheme
  /// checks whether the value is possible for a request.
  std::string set(std::string_view name, std::string_view text);
  /// The value of the option at `index`, in the form that `set` reads.
  std::string print(size_t index) const;

  bool operator==(const Options &other) const { return values == other.values; }

private:
  std::span<const Option> options;
  std::vector<int32_t> values; ///< by index in the table
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_OPTIONS_H
