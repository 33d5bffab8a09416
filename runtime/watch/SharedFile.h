//===- SharedFile.h - A file that processes of a host share -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file has no name, and disappears with the last process that has it open.
// One process makes it and tells the others its own process number and file
// descriptor, under which they find the file in /proc. Ranks of one host may be
// in containers, where the same process number belongs to another process: then
// they find another file there, or none. So the file begins with a nonce, which
// is checked before anything is written.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_SHAREDFILE_H
#define CHIMERA_RUNTIME_WATCH_SHAREDFILE_H

#include <cstdint>
#include <optional>

namespace chimera::runtime {

class SharedFile {
public:
  /// Where the file is open, and how to recognise it. Plain memory.
  struct Place {
    int32_t pid;
    int32_t number;
    uint64_t pidNamespace; ///< in which the process has this number
    uint64_t bytes;
    uint64_t nonce; ///< the first 8 bytes of the file
  };

  /// Makes a file of `bytes` bytes, at least 8, whose size cannot be changed.
  /// It holds the nonce and then zeros. Throws std::runtime_error where there
  /// is no memory for it.
  static SharedFile make(uint64_t bytes);

  /// Opens the file at `place`. Returns none if it cannot be opened, if it is
  /// not the file that was made there, or if that process is in another PID
  /// namespace. Never changes another file.
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
