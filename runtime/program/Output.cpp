//===- Output.cpp - Files written whole -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Output.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
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

std::string nameOf(const std::string &path) {
  return path.substr(path.rfind('/') + 1);
}

bool areEqual(const struct stat &left, const struct stat &right) {
  return left.st_dev == right.st_dev && left.st_ino == right.st_ino;
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

bool writeAll(int descriptor, Parts parts) {
  for (std::span<const std::byte> bytes : parts)
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

bool writeWhole(const std::string &path, Parts parts, std::string &error,
                const std::function<bool()> &isWanted) {
  auto fail = [&](const char *what) {
    error = path + ": cannot " + what + ": " + reason(errno);
    return false;
  };

  // A device or a pipe takes no other file's name. A link stays a link.
  struct stat status;
  bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists) {
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      return fail("write");
    }
    if (!isRegularOrNew(path)) {
      if (!isWanted())
        return false;
      Descriptor device(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
      if (device.get() < 0)
        return fail("open");
      return writeAll(device.get(), parts) && device.close() ? true
                                                             : fail("write");
    }
  }

  std::string target = targetOf(path);
  Descriptor file = createBeside(target);
  if (file.get() < 0)
    return fail("create a file in its folder");
  if ((exists && ::fchmod(file.get(), status.st_mode & 0777) != 0) ||
      !writeAll(file.get(), parts) || ::fsync(file.get()) != 0)
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

bool writeStandardOutput(Parts parts, std::string &error,
                         const std::function<bool()> &isWanted) {
  if (!isWanted())
    return false;
  if (writeAll(STDOUT_FILENO, parts))
    return true;
  error = "cannot write to standard output: " + reason(errno);
  return false;
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
    if (!isRegularOrNew(path))
      return ::access(path.c_str(), W_OK) == 0 ? "" : problem(errno);
  }
  std::string folder = folderOf(targetOf(path));
  if (::stat(folder.c_str(), &status) != 0)
    return problem(errno);
  if (!S_ISDIR(status.st_mode))
    return problem(ENOTDIR);
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? "" : problem(errno);
}

std::string targetOf(const std::string &path) {
  // Not realpath: what a link leads to need not be there yet.
  constexpr int kMaxLinks = 40;
  std::error_code error;
  std::filesystem::path target = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error)
      break;
    target = target.parent_path() / next;
  }
  return target;
}

bool isRegularOrNew(const std::string &path) {
  struct stat status, target;
  if (::stat(path.c_str(), &status) != 0)
    return true;
  return S_ISREG(status.st_mode) &&
         ::stat(targetOf(path).c_str(), &target) == 0 &&
         areEqual(status, target);
}

bool areSameFile(const std::string &left, const std::string &right) {
  auto isThere = [](const std::string &path, struct stat &status) {
    return ::stat(path.c_str(), &status) == 0;
  };
  struct stat a, b;
  bool isLeftThere = isThere(left, a), isRightThere = isThere(right, b);
  if (left.empty() || right.empty())
    return false;
  if (isLeftThere || isRightThere)
    return isLeftThere && isRightThere && S_ISREG(a.st_mode) && areEqual(a, b);
  std::string first = targetOf(left), second = targetOf(right);
  return isThere(folderOf(first), a) && isThere(folderOf(second), b) &&
         areEqual(a, b) && nameOf(first) == nameOf(second);
}

} // namespace chimera::program
