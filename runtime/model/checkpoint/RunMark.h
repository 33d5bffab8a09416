//===- RunMark.h - A file that shows whether ranks share a folder -*- C++ -*-=//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CHECKPOINT_RUNMARK_H
#define CHIMERA_RUNTIME_MODEL_CHECKPOINT_RUNMARK_H

#include <cstdint>
#include <string>

namespace chimera::runtime {

/// The names of these files begin with this.
inline constexpr char kRunMark[] = ".run-";

/// A file in a folder of checkpoints. The root of a run writes it, and the
/// other ranks look for it, to find out whether they have the same folder.
class RunMark {
public:
  /// Writes the file. Throws std::runtime_error if it cannot be written.
  RunMark(const std::string &folder, uint64_t nonce);
  /// Removes the file.
  ~RunMark();
  RunMark(const RunMark &) = delete;
  RunMark &operator=(const RunMark &) = delete;

  /// Whether the file exists. Looks for some seconds, because a network file
  /// system may show new files late.
  static bool isSeen(const std::string &folder, uint64_t nonce);

private:
  std::string path;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CHECKPOINT_RUNMARK_H
