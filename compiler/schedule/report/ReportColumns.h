//===- ReportColumns.h - The values of a report by name ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_REPORTCOLUMNS_H
#define CHIMERA_COMPILER_SCHEDULE_REPORTCOLUMNS_H

#include "compiler/schedule/report/Report.h"

#include <nlohmann/json.hpp>

namespace chimera::schedule {

/// How the table formats a number. CSV and JSON contain the number unchanged.
enum class ReportForm : uint8_t { Plain, Share, Time, Bytes };

/// A value of a report, for all output formats.
struct ReportColumn {
  const char *name; ///< in CSV and JSON
  /// The label in the table. Null if the table shows the value as its heading.
  const char *text;
  /// Returns null if the report has no such value.
  nlohmann::ordered_json (*value)(const Report &report);
  ReportForm form = ReportForm::Plain;
};

/// Sizes, times and results. The table, CSV and JSON all contain these columns.
std::span<const ReportColumn> reportColumns();

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_REPORTCOLUMNS_H
