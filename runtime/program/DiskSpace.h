//===- DiskSpace.h - Whether files will fit on their disks ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_DISKSPACE_H
#define CHIMERA_RUNTIME_PROGRAM_DISKSPACE_H

#include <cstdint>
#include <string>
#include <vector>

namespace chimera::program {

struct PlannedFile {
  std::string path;
  uint64_t bytes;
};

/// Returns which files do not fit on their file systems now; empty if
/// writeAtomically (Output.h) has room for all of them. Files on the same file
/// system are added up. A file that will be replaced still takes its room while
/// the new one is written. Files that are not regular, and file systems that do
/// not report their size, count as having enough room. Call it before long work
/// whose result goes into the files.
std::string checkDiskSpace(const std::vector<PlannedFile> &files);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_DISKSPACE_H
