//===- Room.h - Whether files will fit on their disks -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_ROOM_H
#define CHIMERA_RUNTIME_PROGRAM_ROOM_H

#include <cstdint>
#include <string>
#include <vector>

namespace chimera::program {

struct PlannedFile {
  std::string path;
  uint64_t bytes;
};

/// Empty if writeWhole (Output.h) has room for all the files now, those on one
/// file system together, else which have none: to be asked before long work
/// whose result they hold. A file that one of them replaces still takes room
/// then. What is no regular file, and a file system that does not say what it
/// has, are taken to have room.
std::string checkRoom(const std::vector<PlannedFile> &files);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_ROOM_H
