//===- DiskSpace.cpp - Whether files will fit on their disks --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/DiskSpace.h"

#include "runtime/program/Output.h"
#include "runtime/program/Saturated.h"

#include <filesystem>
#include <map>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace chimera::program {

namespace {
/// The files planned for one file system, and their bytes.
struct Use {
  std::string names;
  uint64_t files = 0;
  uint64_t bytes = 0;
  struct statvfs has = {};
};
} // namespace

std::string checkDiskSpace(const std::vector<PlannedFile> &files) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0)
    limit.rlim_cur = RLIM_INFINITY;
  std::map<dev_t, Use> uses;
  for (const auto &[path, bytes] : files) {
    if (!isRegularOrNew(path))
      continue;
    if (limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
      return path + ": expected a limit of at least " + std::to_string(bytes) +
             " bytes on the size of a file (ulimit -f), got " +
             std::to_string(limit.rlim_cur);
    std::filesystem::path folder =
        std::filesystem::path(targetOf(path)).parent_path();
    if (folder.empty())
      folder = ".";
    struct stat status;
    struct statvfs has;
    if (::stat(folder.c_str(), &status) != 0 ||
        ::statvfs(folder.c_str(), &has) != 0 || has.f_blocks == 0)
      continue;
    Use &use = uses[status.st_dev];
    use.names += (use.names.empty() ? "" : ", ") + path;
    use.has = has;
    ++use.files;
    uint64_t block = has.f_frsize ? has.f_frsize : 1;
    use.bytes = saturatedSum(
        use.bytes,
        saturatedProduct(bytes / block + (bytes % block != 0), block));
  }
  // Only root may use all blocks and inodes: file systems reserve some for
  // root.
  bool isRoot = ::geteuid() == 0;
  for (const auto &[device, use] : uses) {
    uint64_t room = saturatedProduct(
        isRoot ? use.has.f_bfree : use.has.f_bavail, use.has.f_frsize);
    if (use.bytes > room)
      return use.names + ": expected room for " + std::to_string(use.bytes) +
             " bytes on the file system, got " + std::to_string(room) +
             ": free some, or write elsewhere";
    uint64_t nodes = isRoot ? use.has.f_ffree : use.has.f_favail;
    if (use.has.f_files != 0 && use.files > nodes)
      return use.names + ": expected room for more files on the file system, "
                         "got none: remove some, or write elsewhere";
  }
  return {};
}

} // namespace chimera::program
