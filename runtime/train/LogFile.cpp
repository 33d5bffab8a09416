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

/// Renames a file unless the name `free` is taken. Returns false and sets errno
/// if that fails: to EEXIST if the name is taken.
static bool renameToNew(const std::string &file, const std::string &free) {
  if (renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, free.c_str(),
                RENAME_NOREPLACE) == 0)
    return true;
  // Some file systems do not support RENAME_NOREPLACE. On such a file system,
  // check first that the name is free.
  if (errno != EINVAL && errno != ENOSYS)
    return false;
  struct stat found;
  if (lstat(free.c_str(), &found) == 0) {
    errno = EEXIST;
    return false;
  }
  return std::rename(file.c_str(), free.c_str()) == 0;
}

LogFile::LogFile(std::string target, std::string part)
    : target(std::move(target)), part(std::move(part)) {}

// The delegated constructor has completed. So if this constructor throws, the
// destructor closes the file.
LogFile::LogFile(const std::string &file, const Classify &classify)
    : LogFile(program::isRegularOrNew(file) ? program::targetOf(file) : file,
              temporaryName(file)) {
  do {
    if (descriptor >= 0)
      close(descriptor);
    // The log of a run that ended has its final name.
    isComplete = classify && grows() && access(part.c_str(), F_OK) != 0 &&
                 access(target.c_str(), F_OK) == 0;
    const std::string &name = isComplete ? target : part;
    descriptor = open(name.c_str(),
                      (classify && grows() ? O_RDWR : O_WRONLY) | O_CLOEXEC |
                          (grows() && !isComplete ? O_CREAT : 0),
                      0666);
    if (descriptor < 0 && isComplete && errno == ENOENT)
      continue;
    if (descriptor < 0)
      fail();
    if (!grows())
      return;
    // If the file system does not support locks, continue without a lock.
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw std::runtime_error("cannot write the log " + name +
                               ": another run is writing it");
    // Between open and flock, another run may have completed its log and
    // renamed it. In that case, try again.
    if (isStillNamed(name)) {
      if (classify)
        readOld(classify);
      if (classify || isEmpty())
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

bool LogFile::isStillNamed(const std::string &name) const {
  struct stat opened, named;
  return fstat(descriptor, &opened) == 0 && stat(name.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool LogFile::isEmpty() const {
  struct stat opened;
  if (fstat(descriptor, &opened) != 0)
    fail();
  return opened.st_size == 0;
}

/// Reads a log that is continued, and finds the lines that stay.
void LogFile::readOld(const Classify &classify) {
  const std::string &name = isComplete ? target : part;
  std::ifstream lines(name, std::ios::binary);
  std::string line;
  kept = Kept{0, {}};
  bool isPrefix = true;
  uint64_t complete = 0; // number of lines
  // A last line without a line break is incomplete.
  for (; std::getline(lines, line) && !lines.eof(); ++complete) {
    const Line decision = classify(line, /*isWhole=*/true);
    if (decision == Line::Unknown && complete == 0)
      refuse(name);
    unknown += decision == Line::Unknown;
    isPrefix &= decision == Line::Keep;
    if (isPrefix)
      kept->size = lines.tellg();
    else if (decision == Line::Keep)
      kept->later += line + "\n";
  }
  if (lines.bad())
    fail();
  // A run may have been killed while it wrote the first line.
  if (complete == 0 && !line.empty() &&
      classify(line, /*isWhole=*/false) == Line::Unknown)
    refuse(name);
}

void LogFile::refuse(const std::string &name) {
  throw std::runtime_error("--log: cannot continue '" + name +
                           "', which is no log of a run: give another file");
}

/// Gives the log that is continued its temporary name, and removes the lines
/// that do not stay. Sets the position to the end.
void LogFile::beginToContinue() {
  if (isComplete && !renameToNew(target, part))
    fail();
  isComplete = false;
  // Write the later lines before the end is cut off, so that no moment loses
  // them.
  const auto end = kept->size + static_cast<off_t>(kept->later.size());
  if (lseek(descriptor, kept->size, SEEK_SET) < 0 ||
      !program::writeAll(descriptor, {std::as_bytes(std::span(kept->later))}) ||
      ftruncate(descriptor, end) != 0)
    fail();
  kept.reset();
}

void LogFile::number(const std::string &file) const {
  for (uint64_t i = 1;
       !renameToNew(file, target + "." + std::to_string(i)) && errno != ENOENT;
       ++i)
    if (errno != EEXIST)
      fail();
}

void LogFile::append(std::string_view text) {
  if (kept)
    beginToContinue();
  if (!program::writeAll(descriptor, {std::as_bytes(std::span(text))}))
    fail();
}

void LogFile::complete() {
  // Closing the descriptor ends the lock. Rename the file before it is closed,
  // so that no other run can lock and rename it first.
  if (kept)
    beginToContinue();
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
