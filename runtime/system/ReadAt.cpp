//===- ReadAt.cpp - Reads a range of a file -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/ReadAt.h"

#include <cerrno>
#include <unistd.h>

ssize_t chimera::runtime::readAt(int file, uint64_t offset,
                                 std::span<std::byte> bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count =
        ::pread(file, bytes.data() + filled, bytes.size() - filled,
                static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return -1;
    if (count == 0)
      break;
    filled += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(filled);
}
