//===- KillAtCall.cpp - Kills a process at a chosen system call -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library for LD_PRELOAD. It counts the calls that change files in the folder
// KILL_IN_FOLDER: open with O_CREAT or O_TMPFILE, write, fsync, rename, linkat,
// mkdir, rmdir and unlink. It kills the process with SIGKILL before call number
// KILL_AT_CALL, from 1. After each call, it writes the number of calls to the
// file KILL_COUNT. If KILL_RANK is set, it does so only in this rank of an MPI
// job.
//
// If SLOW_FILE is set, a new file in the folder whose name contains this text
// gets its name SLOW_SECONDS late.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace {
std::atomic<long> calls{0};

const char *setting(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

void count() {
  if (const char *rank = std::getenv("KILL_RANK");
      rank && setting("OMPI_COMM_WORLD_RANK") != std::string(rank))
    return;
  if (++calls == std::atol(setting("KILL_AT_CALL")))
    raise(SIGKILL);
  if (FILE *file = std::fopen(setting("KILL_COUNT"), "w")) {
    std::fprintf(file, "%ld", calls.load());
    std::fclose(file);
  }
}

bool isInFolder(const char *path) {
  const char *folder = setting("KILL_IN_FOLDER");
  return *folder && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool isInFolder(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = readlink(link.c_str(), path, sizeof path - 1);
  if (length < 0)
    return false;
  path[length] = 0;
  return isInFolder(path);
}

template <typename Function> Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}
} // namespace

extern "C" {
int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  if ((flags & (O_CREAT | O_TMPFILE)) != 0 && (flags & O_ACCMODE) != O_RDONLY &&
      isInFolder(path))
    count();
  return next<int(const char *, int, ...)>("open")(path, flags, mode);
}

ssize_t write(int file, const void *bytes, size_t size) {
  if (isInFolder(file))
    count();
  return next<ssize_t(int, const void *, size_t)>("write")(file, bytes, size);
}

int fsync(int file) {
  if (isInFolder(file))
    count();
  return next<int(int)>("fsync")(file);
}

int rename(const char *from, const char *to) {
  if (isInFolder(from))
    count();
  return next<int(const char *, const char *)>("rename")(from, to);
}

int linkat(int fromFolder, const char *from, int toFolder, const char *to,
           int flags) {
  if (isInFolder(to)) {
    count();
    if (const char *slow = std::getenv("SLOW_FILE");
        slow && std::strstr(to, slow))
      sleep(static_cast<unsigned>(std::atoi(setting("SLOW_SECONDS"))));
  }
  return next<int(int, const char *, int, const char *, int)>("linkat")(
      fromFolder, from, toFolder, to, flags);
}

int mkdir(const char *path, mode_t mode) {
  if (isInFolder(path))
    count();
  return next<int(const char *, mode_t)>("mkdir")(path, mode);
}

int rmdir(const char *path) {
  if (isInFolder(path))
    count();
  return next<int(const char *)>("rmdir")(path);
}

int unlink(const char *path) {
  if (isInFolder(path))
    count();
  return next<int(const char *)>("unlink")(path);
}

int unlinkat(int folder, const char *path, int flags) {
  if (isInFolder(folder))
    count();
  return next<int(int, const char *, int)>("unlinkat")(folder, path, flags);
}
}
