//===- SharedFile.h - A file shared by processes ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file without a name that processes share. It disappears when the last
// process that has it open ends. One process creates the file and tells its PID
// and file descriptor to the others, which open /proc/PID/fd/N. If a process is
// in a container with another PID namespace, this path may be another file or
// not exist. So the file begins with a nonce, which a process checks before it
// writes to the file.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_SHAREDFILE_H
#define CHIMERA_RUNTIME_WATCH_SHAREDFILE_H

#include <cstdint>
#include <optional>

namespace chimera::runtime {

class SharedFile {
public:
  /// The data that another process needs to open the file and to recognise it.
  /// Trivially copyable.
  struct Location {
    int32_t pid;
    int32_t fd;
    uint64_t pidNamespace; ///< the PID namespace in which `pid` is valid
    uint64_t bytes;
    uint64_t nonce; ///< the first 8 bytes of the file
  };

  /// Creates a file of `bytes` bytes: the nonce and then zeros. No process can
  /// change the size of the file. Requires `bytes` >= 8. Throws
  /// std::runtime_error if there is no memory for the file.
  static SharedFile make(uint64_t bytes);

  /// Opens the file at `location`. Returns none if it cannot be opened, if it
  /// is not the file that `make` created, or if location.pid is in another PID
  /// namespace. Never changes another file. Throws std::runtime_error if this
  /// process has too many open files.
  static std::optional<SharedFile> open(const Location &location);

  SharedFile(SharedFile &&other);
  ~SharedFile();
  SharedFile &operator=(SharedFile &&) = delete;

  const Location &location() const { return where; }
  /// The file descriptor, for mmap.
  int fd() const { return where.fd; }

private:
  explicit SharedFile(const Location &where) : where(where) {}
  Location where; ///< location in this process; fd is -1 after a move
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_SHAREDFILE_H
