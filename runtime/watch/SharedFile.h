//===- SharedFile.h - A file that processes of a host share -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file has no name and is gone with the last process that has it. One
// process makes it and tells the others where it is open there; they find it
// under /proc. Ranks of one host may be in containers, where the number of a
// process is another's: then that place is some other file, or none. So the
// file says who it is, and nothing is written before it was asked.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_SHAREDFILE_H
#define CHIMERA_RUNTIME_WATCH_SHAREDFILE_H

#include <cstdint>
#include <optional>

namespace chimera::runtime {

class SharedFile {
public:
  /// Where the file is open, and how to know it. Plain memory.
  struct Place {
    int32_t pid;
    int32_t number;
    uint64_t pidNamespace; ///< in which the process has this number
    uint64_t bytes;
    uint64_t nonce; ///< the first 8 bytes of the file
  };

  /// Makes a file of `bytes` bytes, at least 8: the nonce first, then zeros. It
  /// keeps its size. Throws std::runtime_error where there is no memory for it.
  static SharedFile make(uint64_t bytes);

  /// The file at `place`, if it can be opened and is the one that was made
  /// there, and if processes have the same numbers there and here. No other
  /// file is changed.
  static std::optional<SharedFile> open(const Place &place);

  SharedFile(SharedFile &&other);
  ~SharedFile();
  SharedFile &operator=(SharedFile &&) = delete;

  const Place &place() const { return where; }
  /// The file descriptor, for mmap.
  int number() const { return where.number; }

private:
  explicit SharedFile(const Place &where) : where(where) {}
  Place where; ///< in this process; number -1 for none
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_SHAREDFILE_H
