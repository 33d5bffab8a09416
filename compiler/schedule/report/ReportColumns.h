//===- ReportColumns.h - What a report has to say ---------------*- C++ -*-===//
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

/// How the table writes a number, for people; CSV and JSON have it as it is.
enum class ReportForm : uint8_t { Plain, Share, Time, Bytes };

/// A column of all forms. Null where a report has no value for it.
struct ReportColumn {
  const char *name; ///< in CSV and JSON
  const char *text; ///< in the table; null for its heading
  nlohmann::ordered_json (*value)(const Report &report);
  ReportForm form = ReportForm::Plain;
};

/// Sizes, times, results; a table, a CSV row and a JSON object walk them.
std::span<const ReportColumn> reportColumns();

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_REPORTCOLUMNS_H
