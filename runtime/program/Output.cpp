//===- Output.cpp - Files written whole -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Output.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace chimera::program {

namespace {

std::string reason(int code) {
  return std::error_code(code, std::generic_category()).message();
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "."
         : slash == 0               ? "/"
                                    : path.substr(0, slash);
}

/// An open file that is closed, and if it is temporary removed, on every path.
class Descriptor {
public:
  explicit Descriptor(int number, std::string temporary = {})
      : temporary(std::move(temporary)), number(number) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    close();
    if (!temporary.empty())
      ::unlink(temporary.c_str());
  }

  int get() const { return number; }
  bool close() {
    int closing = number;
    number = -1;
    return closing < 0 || ::close(closing) == 0;
  }
  /// The path to remove; cleared once the file has its final name.
  std::string temporary;

private:
  int number;
};

/// False, with errno set, where not all bytes could be written.
bool writeAll(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

/// Calls `make` with names beside `path` until one is free. Empty, with errno
/// set, where none can be made.
template <typename Make>
std::string nameBeside(const std::string &path, Make make) {
  for (int attempt = 0;; ++attempt) {
    std::string name = path + "." + std::to_string(::getpid()) + "." +
                       std::to_string(attempt) + ".tmp";
    if (make(name.c_str()))
      return name;
    if (errno != EEXIST || attempt >= 100)
      return {};
  }
}

/// A new file in the folder of `path`. It has no name yet, so that nothing is
/// left of it should the process be killed; where the file system knows no such
/// files it has one, and is removed unless `temporary` is cleared. Without a
/// descriptor, errno set, where it cannot be made.
Descriptor createBeside(const std::string &path) {
  int number =
      ::open(folderOf(path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (number >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
    return Descriptor(number);
  std::string name = nameBeside(path, [&](const char *candidate) {
    number = ::open(candidate, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return number >= 0;
  });
  return Descriptor(number, name);
}

/// Gives the file a name beside `path` if it has none. False, with errno set,
/// where that fails.
bool nameIt(Descriptor &file, const std::string &path) {
  if (!file.temporary.empty())
    return true;
  std::string self = "/proc/self/fd/" + std::to_string(file.get());
  file.temporary = nameBeside(path, [&](const char *candidate) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, candidate,
                    AT_SYMLINK_FOLLOW) == 0;
  });
  return !file.temporary.empty();
}

} // namespace

bool writeWhole(const std::string &path,
                std::initializer_list<std::span<const std::byte>> parts,
                std::string &error, const std::function<bool()> &isWanted) {
  auto writeParts = [&](int descriptor) {
    for (std::span<const std::byte> part : parts)
      if (!writeAll(descriptor, part))
        return false;
    return true;
  };
  auto fail = [&](const char *what) {
    error = path + ": cannot " + what + ": " + reason(errno);
    return false;
  };

  // A device or a pipe takes no other file's name. A link stays a link.
  std::string target = path;
  struct stat status;
  bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists) {
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      return fail("write");
    }
    if (!S_ISREG(status.st_mode)) {
      if (!isWanted())
        return false;
      Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (device.get() < 0)
        return fail("open");
      return writeParts(device.get()) && device.close() ? true : fail("write");
    }
    if (char *resolved = ::realpath(path.c_str(), nullptr)) {
      target = resolved;
      std::free(resolved);
    }
  }

  Descriptor file = createBeside(target);
  if (file.get() < 0)
    return fail("create a file in its folder");
  if ((exists && ::fchmod(file.get(), status.st_mode & 0777) != 0) ||
      !writeParts(file.get()) || ::fsync(file.get()) != 0)
    return fail("write");
  if (!isWanted())
    return false;
  if (!nameIt(file, target))
    return fail("name the finished file in its folder");
  if (!file.close())
    return fail("write");
  if (::rename(file.temporary.c_str(), target.c_str()) != 0)
    return fail("put the finished file in its place");
  file.temporary.clear();
  return true;
}

std::string checkOutput(const std::string &path) {
  auto problem = [&](int code) {
    return path + ": cannot write: " + reason(code);
  };
  if (path.empty())
    return problem(ENOENT);
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      return problem(EISDIR);
    if (!S_ISREG(status.st_mode))
      return ::access(path.c_str(), W_OK) == 0 ? "" : problem(errno);
  }
  std::string folder = folderOf(path);
  if (::stat(folder.c_str(), &status) != 0)
    return problem(errno);
  if (!S_ISDIR(status.st_mode))
    return problem(ENOTDIR);
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? "" : problem(errno);
}

bool isRegularOrNew(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

} // namespace chimera::program
