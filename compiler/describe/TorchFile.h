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

/// A module that describes a file of computations.
struct DescribedTorchFile {
  std::string text; ///< of the module, with one pipeline
  /// Why blank cells are left out. Empty if they are not.
  std::string whyNoBlanks;
  /// For each line of the file, the columns at which actions begin: in the
  /// locations of the module, and in the file. Both are ascending.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> columns;

  /// The column in the file, from a location of the module.
  uint32_t columnOf(uint32_t line, uint32_t column) const;
};

/// Describes a file like describeOrderFile. `file` has the computations of each
/// rank, and `text` is its text. Blank cells become idle slots, unless the file
/// has pairs or an action would then be in no later slot than one on which it
/// depends. Returns nothing if a rank has no action, or for the reasons of
/// describeOrderFile. Then `error` has "PATH:LINE:COLUMN: error: …". Requires
/// that `file` is not lowered.
std::optional<DescribedTorchFile>
describeTorchFile(std::string_view path, std::string_view text,
                  const schedule::torch::File &file, std::string &error);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_TORCHFILE_H
