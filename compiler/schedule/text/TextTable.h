//===- TextTable.h - Columns of text ----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TEXT_TEXTTABLE_H
#define CHIMERA_COMPILER_SCHEDULE_TEXT_TEXTTABLE_H

#include <string>
#include <vector>

namespace chimera::schedule {

/// A table as text. The first row has the headings. Each column is as wide as
/// its widest cell. The first `names` columns are aligned to the left, the
/// others to the right. Requires that all rows have the same number of cells.
std::string textTable(const std::vector<std::vector<std::string>> &rows,
                      size_t names);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TEXT_TEXTTABLE_H
