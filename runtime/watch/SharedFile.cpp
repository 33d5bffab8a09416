//===- SharedFile.cpp - A file shared by processes ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/SharedFile.h"

#include "runtime/system/ErrorText.h"
#include "runtime/system/PidNamespace.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace chimera::runtime;

namespace {
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::string pathOf(int32_t pid, int fd) {
  return "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
}

bool isRegular(int fd, uint64_t bytes) {
  struct stat status = {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<uint64_t>(status.st_size) == bytes;
}

/// Called after a failed open. Throws if there are too many open files.
/// Otherwise returns none: if the file is in another container, this is no
/// error.
std::nullopt_t noneOrThrow() {
  if (errno == EMFILE || errno == ENFILE)
    throw std::runtime_error("cannot open the status page of the ranks: " +
                             errorText(errno));
  return std::nullopt;
}

[[noreturn]] void throwNone(int error) {
  throw std::runtime_error("cannot create the status page of the ranks: " +
                           errorText(error));
}
} // namespace

SharedFile::SharedFile(SharedFile &&other)
    : where(std::exchange(other.where, {0, -1, 0, 0, 0})) {}

SharedFile::~SharedFile() {
  if (where.fd >= 0)
    close(where.fd);
}

SharedFile SharedFile::make(uint64_t bytes) {
  int fd = memfd_create("chimera-status", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    throwNone(errno);
  SharedFile file({getpid(), fd, pidNamespace(), bytes, 0});
  // Reserve all of the memory now and seal the size. Otherwise memory could run
  // out later, or another process could make the file shorter, and an access to
  // the mapped file would be a bus error.
  if (int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes)))
    throwNone(error);
  uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce) ||
      pwrite(fd, &nonce, sizeof(nonce), 0) != sizeof(nonce) ||
      fcntl(fd, F_ADD_SEALS, kSeals) != 0)
    throwNone(errno);
  file.where.nonce = nonce;
  return file;
}

std::optional<SharedFile> SharedFile::open(const Location &location) {
  uint64_t here = pidNamespace();
  if (here == 0 || here != location.pidNamespace)
    return std::nullopt;
  // First open only the path (O_PATH) and check the type of the file: opening a
  // device or a pipe may have side effects.
  int path =
      ::open(pathOf(location.pid, location.fd).c_str(), O_PATH | O_CLOEXEC);
  if (path < 0)
    return noneOrThrow();
  SharedFile seen({getpid(), path, here, location.bytes, location.nonce});
  if (!isRegular(path, location.bytes))
    return std::nullopt;
  int fd = ::open(("/proc/self/fd/" + std::to_string(path)).c_str(),
                  O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return noneOrThrow();
  SharedFile file({getpid(), fd, here, location.bytes, location.nonce});
  uint64_t nonce = 0;
  int seals = fcntl(fd, F_GET_SEALS);
  bool isIt = seals >= 0 && (seals & kSeals) == kSeals &&
              pread(fd, &nonce, sizeof(nonce), 0) == sizeof(nonce) &&
              nonce == location.nonce;
  return isIt ? std::optional(std::move(file)) : std::nullopt;
}
