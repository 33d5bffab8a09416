//===- Output.cpp - Files written completely or not at all ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Output.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace chimera::program {

std::string reasonOf(int code) {
  return std::error_code(code, std::generic_category()).message();
}

namespace {

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

/// An open file. The destructor closes it and, if it still has a temporary
/// name, removes it.
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
  /// The temporary name of the file. Empty if it has none, in particular after
  /// it got its final name.
  std::string temporary;

private:
  int number;
};

/// A temporary name for `path` that this process has not used before. The
/// process holds a lock on each file to which it gives a temporary name.
std::string temporaryName(const std::string &path) {
  static std::atomic<uint32_t> names{0};
  return path + "." + std::to_string(::getpid()) + "." +
         std::to_string(names++) + ".tmp";
}

/// Whether `name` is a temporary name for `target`, in this or another process.
bool isTemporaryName(const std::string &name, const std::string &target) {
  if (!name.starts_with(target + "."))
    return false;
  const char *numbers = name.c_str() + target.size() + 1;
  int end = 0;
  std::sscanf(numbers, "%*[0-9].%*[0-9].tmp%n", &end);
  return end > 0 && numbers[end] == '\0';
}

bool lock(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

bool isNamed(int descriptor, const std::string &path) {
  struct stat opened, named;
  return ::fstat(descriptor, &opened) == 0 && S_ISREG(opened.st_mode) &&
         ::lstat(path.c_str(), &named) == 0 && areEqual(opened, named);
}

/// Removes files that killed processes left in the folder of `path`. These
/// files have a temporary name for `path` and are not locked.
void removeLeftovers(const std::string &path) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folderOf(path), error), end;
       !error && entry != end; entry.increment(error)) {
    if (!isTemporaryName(entry->path().filename(), nameOf(path)))
      continue;
    std::string name = entry->path();
    Descriptor file(
        ::open(name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() >= 0 && lock(file.get()) && isNamed(file.get(), name))
      ::unlink(name.c_str());
  }
}

/// Calls `make`, which creates a file, with temporary names for `path` until it
/// succeeds. Returns the name of the file. Returns an empty name, with errno
/// set, if `make` fails with an error other than EEXIST, or after 101 attempts.
template <typename Make>
std::string nameBeside(const std::string &path, Make make) {
  for (int attempt = 0;; ++attempt) {
    std::string name = temporaryName(path);
    if (make(name.c_str()))
      return name;
    if (errno != EEXIST || attempt >= 100)
      return {};
  }
}

/// Creates and locks a new file in the folder of `path`. The file has no name,
/// so it disappears if the process is killed. If the file system has no unnamed
/// files, it has a temporary name. On failure, the descriptor is negative and
/// errno is set.
Descriptor createBeside(const std::string &path) {
  int number =
      ::open(folderOf(path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (number >= 0)
    lock(number);
  if (number >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
    return Descriptor(number);
  std::string name = nameBeside(path, [&](const char *candidate) {
    number = ::open(candidate, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number < 0)
      return false;
    // Between open and lock, removeLeftovers of another process may remove the
    // file, because it is not locked yet.
    lock(number);
    if (isNamed(number, candidate))
      return true;
    ::close(number);
    number = -1;
    errno = EEXIST;
    return false;
  });
  return Descriptor(number, name);
}

/// Gives the name `name` to the open file. Returns false, with errno set, if
/// that fails.
bool link(const Descriptor &file, const char *name) {
  std::string self = "/proc/self/fd/" + std::to_string(file.get());
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) ==
         0;
}

/// Gives its final name to the complete file. Returns false, with errno set, if
/// that fails.
bool place(Descriptor &file, const std::string &target, IfExists ifExists) {
  // If no file has this name yet, link is enough.
  if (link(file, target.c_str()))
    return true;
  if (errno != EEXIST || ifExists == IfExists::Fail)
    return false;
  // link cannot replace an existing file, but rename can. rename needs a file
  // with a name, so give a temporary name to the file.
  if (file.temporary.empty())
    file.temporary = nameBeside(
        target, [&](const char *candidate) { return link(file, candidate); });
  if (file.temporary.empty() ||
      ::rename(file.temporary.c_str(), target.c_str()) != 0)
    return false;
  file.temporary.clear();
  return true;
}

} // namespace

bool writeAll(int descriptor, ByteRanges parts) {
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

bool writeAtomically(const std::string &path, ByteRanges parts,
                     std::string &error,
                     const std::function<bool()> &mayPublish,
                     IfExists ifExists) {
  return writeAtomically(
      path, [&](int descriptor) { return writeAll(descriptor, parts); }, error,
      mayPublish, ifExists);
}

bool writeAtomically(const std::string &path,
                     const std::function<bool(int)> &write, std::string &error,
                     const std::function<bool()> &mayPublish,
                     IfExists ifExists) {
  auto fail = [&](const char *what) {
    error = path + ": cannot " + what + ": " + reasonOf(errno);
    return false;
  };

  // A device or a pipe is written directly, because a new file must not replace
  // it.
  struct stat status;
  bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists) {
    if (ifExists == IfExists::Fail) {
      errno = EEXIST;
      return fail("write");
    }
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      return fail("write");
    }
    if (!isRegularOrNew(path)) {
      if (!mayPublish())
        return false;
      Descriptor device(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
      if (device.get() < 0)
        return fail("open");
      return write(device.get()) && device.close() ? true : fail("write");
    }
  }

  std::string target = targetOf(path);
  removeLeftovers(target);
  Descriptor file = createBeside(target);
  if (file.get() < 0)
    return fail("create a file in its folder");
  if ((exists && ::fchmod(file.get(), status.st_mode & 0777) != 0) ||
      !write(file.get()) || ::fsync(file.get()) != 0)
    return fail("write");
  if (!mayPublish())
    return false;
  return place(file, target, ifExists) ? true
                                       : fail("rename the finished file");
}

bool writeStandardOutput(ByteRanges parts, std::string &error,
                         const std::function<bool()> &mayPublish) {
  if (!mayPublish())
    return false;
  if (writeAll(STDOUT_FILENO, parts))
    return true;
  error = "cannot write to standard output: " + reasonOf(errno);
  return false;
}

std::string checkOutput(const std::string &path) {
  auto cannotWrite = [&](int code) {
    return path + ": cannot write: " + reasonOf(code);
  };
  if (path.empty())
    return cannotWrite(ENOENT);
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      return cannotWrite(EISDIR);
    if (!isRegularOrNew(path))
      return ::access(path.c_str(), W_OK) == 0 ? "" : cannotWrite(errno);
  }
  std::string folder = folderOf(targetOf(path));
  if (::stat(folder.c_str(), &status) != 0)
    return cannotWrite(errno);
  if (!S_ISDIR(status.st_mode))
    return cannotWrite(ENOTDIR);
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? "" : cannotWrite(errno);
}

std::string targetOf(const std::string &path) {
  // realpath would fail if the file at the end of the links does not exist.
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
  // If `path` is /proc/self/fd/N and file N no longer has a name,
  // targetOf(path) is another file or does not exist. In this case, return
  // false. But the opened file and the target can also differ because another
  // process has replaced the file in the meantime. In this case, `path` no
  // longer leads to the opened file, and the loop tries again. No new file can
  // have the inode number of the opened file, because the file is still open.
  for (;;) {
    Descriptor file(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat opened, target, named;
    if (file.get() < 0 || ::fstat(file.get(), &opened) != 0)
      return true;
    if (!S_ISREG(opened.st_mode))
      return false;
    if (::stat(targetOf(path).c_str(), &target) == 0 &&
        areEqual(opened, target))
      return true;
    if (::stat(path.c_str(), &named) == 0 && areEqual(opened, named))
      return false;
  }
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
