//===- Options.h - What a scheme lets a user choose -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_OPTIONS_H
#define CHIMERA_COMPILER_SCHEDULE_OPTIONS_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace chimera::schedule {

/// How more micro-batches than a basic unit holds follow each other.
enum class Concatenation : uint8_t {
  Direct,            ///< one unit after another
  Eager,             ///< direct with first-stage forwards of a unit earlier
  Doubling,          ///< a forward runs two micro-batches, a backward one
  FineTunedDoubling, ///< doubling with a forward for each micro-batch
  Halving,           ///< a forward runs one micro-batch, a backward half of one
};

/// True where every forward and every backward runs one whole micro-batch, unit
/// after unit.
constexpr bool isOneByOne(Concatenation concatenation) {
  return concatenation == Concatenation::Direct ||
         concatenation == Concatenation::Eager;
}

/// The choices of all schemes; each scheme says which it knows.
struct SchemeOptions {
  int32_t pipelines = 2; ///< copies of the model, 2f of them
  Concatenation concatenation = Concatenation::Direct;

  bool operator==(const SchemeOptions &) const = default;
};

/// An option by name. Error text, help and parsers walk `schemeOptions()`.
struct SchemeOption {
  std::string_view name;
  std::string_view summary;
  std::string_view values; ///< what it may be, in words
  /// Sets the option from `text`; false where `text` is none of `values`.
  bool (*parse)(std::string_view text, SchemeOptions &options);
  /// The text that `parse` takes for the option's value.
  std::string (*print)(const SchemeOptions &options);
};

std::span<const SchemeOption> schemeOptions();

/// Null if there is no option of that name.
const SchemeOption *findSchemeOption(std::string_view name);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_OPTIONS_H
