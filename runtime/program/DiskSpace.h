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

/// Checks whether the file systems have enough space to write all `files` with
/// writeAtomically (Output.h). Returns an error text, or an empty text if they
/// have. The sizes of files on the same file system are added. If a file will
/// be replaced, its space is not free yet when the new file is written. Files
/// that are not regular, and file systems that do not report their size, are
/// not checked. Call it before long work whose result is written to these
/// files.
std::string checkDiskSpace(const std::vector<PlannedFile> &files);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_DISKSPACE_H
