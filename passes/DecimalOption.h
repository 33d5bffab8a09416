//===- DecimalOption.h - An option of a pass that is a number ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_DECIMALOPTION_H
#define CHIMERA_PASSES_DECIMALOPTION_H

#include "dialect/Decimal.h"

#include "llvm/Support/CommandLine.h"

/// Lets a pass declare options of type chimera::Decimal.
template <>
class llvm::cl::parser<chimera::Decimal>
    : public llvm::cl::basic_parser<chimera::Decimal> {
public:
  parser(Option &option) : basic_parser(option) {}

  /// Returns true, as LLVM expects, if `text` is not a number.
  bool parse(Option &option, StringRef, StringRef text,
             chimera::Decimal &value) {
    std::optional<chimera::Decimal> read = chimera::decimalOf(text);
    if (!read)
      return option.error("expected a number such as 2, 0.5 or 1e3, got '" +
                          text + "'");
    value = *read;
    return false;
  }

  StringRef getValueName() const override { return "number"; }
  void printOptionDiff(const Option &option, const chimera::Decimal &, OptVal,
                       size_t width) const {
    printOptionNoValue(option, width);
  }
  void anchor() override {}
};

#endif // CHIMERA_PASSES_DECIMALOPTION_H
