//===- TorchFile.h - A pipeline as a file of PyTorch ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_TORCHFILE_H
#define CHIMERA_COMPILER_DESCRIBE_TORCHFILE_H

#include "compiler/schedule/formats/TorchCsv.h"

#include <optional>
#include <string>
#include <string_view>

namespace chimera {

/// The text of a module with one pipeline, like describeOrderFile. `file` has
/// the computations of each rank, and `text` is its text. Idle slots are left
/// out. Returns nothing if a rank has no action, if a forward and a backward
/// run at once, or for the reasons of describeOrderFile. Then `error` has
/// "PATH:LINE:COLUMN: error: …". Requires that `file` is not lowered.
std::optional<std::string> describeTorchFile(std::string_view path,
                                             std::string_view text,
                                             const schedule::torch::File &file,
                                             std::string &error);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_TORCHFILE_H
