//===- LogFile.cpp - A log file with a temporary name ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LogFile.h"

#include "runtime/program/Output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

std::string chimera::runtime::temporaryName(const std::string &file) {
  return program::isRegularOrNew(file) ? program::targetOf(file) + ".part"
                                       : file;
}

LogFile::LogFile(std::string target, std::string part)
    : target(std::move(target)), part(std::move(part)) {}

// The delegated constructor has completed. So if this constructor throws, the
// destructor closes the file.
LogFile::LogFile(const std::string &file, const Keeps &keeps)
    : LogFile(program::isRegularOrNew(file) ? program::targetOf(file) : file,
              temporaryName(file)) {
  // The log of a run that ended has its final name.
  if (keeps && grows() && access(part.c_str(), F_OK) != 0 &&
      std::rename(target.c_str(), part.c_str()) != 0 && errno != ENOENT)
    fail();
  do {
    if (descriptor >= 0)
      close(descriptor);
    descriptor = open(part.c_str(),
                      (keeps && grows() ? O_RDWR : O_WRONLY) | O_CLOEXEC |
                          (grows() ? O_CREAT : 0),
                      0666);
    if (descriptor < 0)
      fail();
    if (!grows())
      return;
    // If the file system does not support locks, continue without a lock.
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw std::runtime_error("cannot write the log " + part +
                               ": another run is writing it");
    // Between open and flock, another run may have completed its log and
    // renamed it. In that case, try again.
    if (isStillNamed()) {
      if (keeps)
        cutAfterKept(keeps);
      if (keeps || isEmpty())
        return;
      // The file is from a run that did not finish. The next iteration makes a
      // new one.
      number(part);
    }
  } while (true);
}

LogFile::~LogFile() {
  if (descriptor >= 0)
    close(descriptor);
}

void LogFile::fail() const {
  throw std::runtime_error("cannot write the log " + part + ": " +
                           std::strerror(errno));
}

bool LogFile::isStillNamed() const {
  struct stat opened, named;
  return fstat(descriptor, &opened) == 0 && stat(part.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool LogFile::isEmpty() const {
  struct stat opened;
  if (fstat(descriptor, &opened) != 0)
    fail();
  return opened.st_size == 0;
}

/// Cuts the file after the lines that stay, and sets its position to the end.
void LogFile::cutAfterKept(const Keeps &keeps) const {
  std::ifstream lines(part, std::ios::binary);
  std::string line;
  off_t end = 0;
  // A last line without a line break is incomplete.
  while (std::getline(lines, line) && !lines.eof() && keeps(line))
    end = lines.tellg();
  if (ftruncate(descriptor, end) != 0 || lseek(descriptor, end, SEEK_SET) < 0)
    fail();
}

void LogFile::number(const std::string &file) const {
  for (uint64_t i = 1;; ++i) {
    const std::string free = target + "." + std::to_string(i);
    if (renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, free.c_str(),
                  RENAME_NOREPLACE) == 0 ||
        errno == ENOENT)
      return;
    if (errno == EEXIST)
      continue;
    // Some file systems do not support RENAME_NOREPLACE. On such a file system,
    // check first that the name is free.
    struct stat found;
    if (errno != EINVAL && errno != ENOSYS)
      fail();
    if (lstat(free.c_str(), &found) == 0)
      continue;
    if (std::rename(file.c_str(), free.c_str()) != 0 && errno != ENOENT)
      fail();
    return;
  }
}

void LogFile::append(std::string_view text) {
  if (!program::writeAll(descriptor, {std::as_bytes(std::span(text))}))
    fail();
}

void LogFile::complete() {
  // Closing the descriptor ends the lock. Rename the file before it is closed,
  // so that no other run can lock and rename it first.
  if (grows()) {
    if (fsync(descriptor) != 0)
      fail();
    number(target);
    if (std::rename(part.c_str(), target.c_str()) != 0)
      fail();
  }
  if (close(std::exchange(descriptor, -1)) != 0)
    fail();
}
