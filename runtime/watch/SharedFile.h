//===- SharedFile.h - A file shared by processes ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file without a name. It disappears with the last process that has it open.
// One process creates it and tells the others its PID and file descriptor, with
// which they find the file in /proc. Ranks of one host may be in containers
// with different PID namespaces: there the PID may belong to another process,
// and they find another file or none. So the file begins with a nonce, which is
// checked before anything is written.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_SHAREDFILE_H
#define CHIMERA_RUNTIME_WATCH_SHAREDFILE_H

#include <cstdint>
#include <optional>

namespace chimera::runtime {

class SharedFile {
public:
  /// A process that has the file open, and the file's marks, by which another
  /// process recognises it. Trivially copyable.
  struct Location {
    int32_t pid;
    int32_t fd;
    uint64_t pidNamespace; ///< in which `pid` is valid
    uint64_t bytes;
    uint64_t nonce; ///< the first 8 bytes of the file
  };

  /// Creates a file of `bytes` bytes, whose size cannot be changed. It has the
  /// nonce and then zeros. Requires `bytes` >= 8. Throws std::runtime_error if
  /// there is no memory for it.
  static SharedFile make(uint64_t bytes);

  /// Opens the file at `location`. Returns nothing if it cannot be opened, if
  /// it is not the file that `make` created, or if its process is in another
  /// PID namespace. Never changes another file. Throws std::runtime_error if
  /// this process has too many open files.
  static std::optional<SharedFile> open(const Location &location);

  SharedFile(SharedFile &&other);
  ~SharedFile();
  SharedFile &operator=(SharedFile &&) = delete;

  const Location &location() const { return where; }
  /// The file descriptor, for mmap.
  int fd() const { return where.fd; }

private:
  explicit SharedFile(const Location &where) : where(where) {}
  Location where; ///< in this process; fd is -1 after a move
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_SHAREDFILE_H
