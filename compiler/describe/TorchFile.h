//===- TorchFile.h - A pipeline as a file of PyTorch ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_TORCHFILE_H
#define CHIMERA_COMPILER_DESCRIBE_TORCHFILE_H

#include "compiler/schedule/formats/TorchCsv.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chimera {

/// A file of computations as the text of an order file.
struct TorchOrders {
  std::string text;
  /// Why blank cells are left out. Empty if they are not.
  std::string whyNoBlanks;
  /// For each line of the file, the columns at which actions begin: in `text`,
  /// and in the file. Both are ascending. Empty if they are the same.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> columns;

  /// The column in the file, from a column in `text`.
  uint32_t columnOf(uint32_t line, uint32_t column) const;
};

/// The orders of a file, which has the computations of each rank and the text
/// `text`. Blank cells become idle slots, unless the file has pairs or an
/// action would then be in no later slot than one on which it depends. Returns
/// nothing if a rank has no action, or for the reasons of readOrderFile. Then
/// `error` has "PATH:LINE:COLUMN: error: …". Requires that `file` is not
/// lowered.
std::optional<TorchOrders> torchOrders(std::string_view path,
                                       std::string_view text,
                                       const schedule::torch::File &file,
                                       std::string &error);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_TORCHFILE_H
