//===- TextTable.h - Columns of text ----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TEXTTABLE_H
#define CHIMERA_COMPILER_SCHEDULE_TEXTTABLE_H

#include <string>
#include <vector>

namespace chimera::schedule {

/// A line for each row, of which the first has the heads. Each column is as
/// wide as its widest cell; the first `names` columns stand to the left, the
/// others to the right. Requires that all rows have as many cells.
std::string textTable(const std::vector<std::vector<std::string>> &rows,
                      size_t names);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TEXTTABLE_H
