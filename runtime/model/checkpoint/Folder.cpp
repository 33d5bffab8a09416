//===- Folder.cpp - A folder of checkpoints -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/Folder.h"

#include "runtime/model/checkpoint/RunMark.h"
#include "runtime/program/Output.h"
#include "runtime/system/Deadline.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

namespace fs = std::filesystem;

namespace {
/// A complete checkpoint, and the number of steps before it.
struct SavedStep {
  uint64_t step;
  std::string path;
};

constexpr std::string_view kStep = "step-", kPartial = ".partial";

/// The name of the checkpoint of `step`. Names have eight digits or more, so
/// that a list of files shows them in order.
std::string stepName(uint64_t step) {
  char text[40];
  std::snprintf(text, sizeof text, "step-%08llu",
                static_cast<unsigned long long>(step));
  return text;
}

/// The step of the checkpoint with this name. None for other names.
std::optional<uint64_t> stepOf(const std::string &name) {
  if (!name.starts_with(kStep))
    return std::nullopt;
  uint64_t step = 0;
  int end = 0;
  if (std::sscanf(name.c_str() + kStep.size(), "%19lu%n", &step, &end) != 1 ||
      stepName(step) != name)
    return std::nullopt;
  return step;
}

[[noreturn]] void fail(const std::string &what, const std::string &reason) {
  throw std::runtime_error(what + ": " + reason);
}

/// Whether a folder is a complete checkpoint. Throws std::runtime_error if it
/// cannot be read.
bool isCheckpoint(const fs::path &folder) {
  std::error_code error;
  const bool is = fs::exists(folder / kTrainingFile, error);
  if (error)
    fail("cannot read the checkpoint '" + folder.string() + "'",
         error.message());
  return is;
}

/// The name of the folder to which `path` leads, also if `path` ends with a
/// slash.
std::string folderName(const std::string &path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return normal.has_filename() ? normal.filename()
                               : normal.parent_path().filename();
}

/// Whether a folder has files of weights or of optimizer state.
bool hasTensorFiles(const std::string &folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if ((name.starts_with(kModelFiles) || name.starts_with(kOptimizerFiles)) &&
        name.find(".safetensors") != name.npos)
      return true;
  }
  return false;
}

/// The checkpoints in `folder`, oldest first. Throws std::runtime_error if one
/// is not complete. No run leaves such a folder.
std::vector<SavedStep> checkpointsIn(const std::string &folder) {
  std::vector<SavedStep> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<uint64_t> step = stepOf(entry->path().filename());
    if (!step)
      continue;
    if (!isCheckpoint(entry->path()))
      throw std::runtime_error(
          "'" + entry->path().string() + "' is not complete: it has no " +
          kTrainingFile + ". Move it away, to continue from the one before it");
    found.push_back({*step, entry->path()});
  }
  if (error)
    fail("cannot read the checkpoints in '" + folder + "'", error.message());
  std::ranges::sort(found, {}, &SavedStep::step);
  return found;
}

/// Throws std::runtime_error if the folder `path` has checkpoints, and
/// `resumedFrom` is not the newest of them.
void refuseOtherCheckpoints(const std::string &path, uint64_t step,
                            const std::string &resumedFrom) {
  const std::vector<SavedStep> found = checkpointsIn(path);
  if (found.empty())
    return;
  std::error_code ignored;
  if (!resumedFrom.empty() &&
      fs::equivalent(found.back().path, resumedFrom, ignored))
    return;
  throw std::runtime_error(
      "'" + path + "' has a checkpoint after " +
      std::to_string(found.back().step) + " steps, and this run begins " +
      (resumedFrom.empty() ? std::string("at the first step")
                           : "after the " + std::to_string(step) +
                                 " steps of '" + resumedFrom + "'") +
      ": give --resume " + path +
      " to continue from it, or another --checkpoint folder");
}

std::string lockOf(const std::string &path) { return path + "/.lock"; }

/// Tries to lock the open file `lock` for at most `patience`, with flock's
/// `kind` of lock. Calls `onWait` once before it waits. Throws
/// std::runtime_error if another run keeps the lock of the folder `path`.
void takeLock(int lock, int kind, const std::string &path,
              std::chrono::milliseconds patience,
              const std::function<void()> &onWait) {
  constexpr std::chrono::milliseconds kPause(50);
  bool hasWaited = false;
  for (Deadline deadline(patience);
       ::flock(lock, kind | LOCK_NB) != 0 && errno == EWOULDBLOCK;) {
    if (deadline.passed())
      throw std::runtime_error("another run writes its checkpoints to '" +
                               path + "': give another --checkpoint folder");
    if (!std::exchange(hasWaited, true))
      onWait();
    std::this_thread::sleep_for(kPause);
  }
}

/// Renames a folder so that it no longer counts as a checkpoint, and then
/// removes it. So if this process is killed, no half of a checkpoint remains.
std::string removeCheckpoint(const SavedStep &old) {
  const std::string partial = old.path + std::string(kPartial);
  if (std::rename(old.path.c_str(), partial.c_str()) != 0)
    return "cannot remove '" + old.path + "': " + program::reasonOf(errno);
  return removeFolder(partial);
}
} // namespace

std::string chimera::runtime::partName(std::string_view prefix, uint32_t part,
                                       uint32_t parts,
                                       std::string_view suffix) {
  char numbers[40];
  std::snprintf(numbers, sizeof numbers, "-%05u-of-%05u", part + 1, parts);
  return std::string(prefix) + numbers + std::string(suffix);
}

std::string chimera::runtime::indexName(std::string_view prefix) {
  return std::string(prefix) + ".safetensors.index.json";
}

std::optional<std::string>
chimera::runtime::findCheckpoint(const std::string &path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    const fs::path folder = fs::path(path).parent_path();
    if (stepOf(fs::path(path).filename()))
      throw std::runtime_error("expected a checkpoint, but '" + path +
                               "' does not exist");
    if (fs::exists(folder, error) && !fs::is_directory(folder, error))
      throw std::runtime_error("expected a folder of checkpoints, but '" +
                               folder.string() + "' is a file");
    return std::nullopt;
  }
  if (error)
    fail("cannot read the checkpoints in '" + path + "'", error.message());
  if (!fs::is_directory(status))
    throw std::runtime_error(
        "expected a folder of checkpoints, got the file '" + path + "'");
  if (isCheckpoint(path))
    return path;
  if (stepOf(folderName(path)) || hasTensorFiles(path))
    throw std::runtime_error(
        "'" + path + "' is not a complete checkpoint: " + "it has no " +
        kTrainingFile + ". To start from its weights alone, give --load");
  const std::vector<SavedStep> found = checkpointsIn(path);
  return found.empty() ? std::nullopt : std::optional(found.back().path);
}

void chimera::runtime::awaitOtherRun(const std::string &path,
                                     const std::function<void()> &onWait,
                                     std::chrono::milliseconds patience) {
  const int lock = ::open(lockOf(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0)
    return; // no run has written there
  try {
    takeLock(lock, LOCK_SH, path, patience, onWait);
  } catch (...) {
    ::close(lock);
    throw;
  }
  ::close(lock);
}

std::string chimera::runtime::faultOfStepName(const std::string &path,
                                              uint64_t step) {
  const std::optional<uint64_t> named = stepOf(folderName(path));
  if (!named || *named == step)
    return {};
  return "expected a checkpoint after " + std::to_string(*named) +
         " steps, as its name says, got one after " + std::to_string(step) +
         ": rename it to " + stepName(step);
}

CheckpointFolder::CheckpointFolder(std::string folder, uint64_t step,
                                   const std::string &resumedFrom,
                                   std::chrono::milliseconds patience)
    : path(std::move(folder)) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    fail("cannot create the folder of checkpoints '" + path + "'",
         error.message());
  lock = ::open(lockOf(path).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0)
    fail("cannot write checkpoints to '" + path + "'",
         program::reasonOf(errno));
  try {
    takeLock(lock, LOCK_EX, path, patience, [] {});
    refuseOtherCheckpoints(path, step, resumedFrom);
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename();
      if (name.starts_with(kRunMark) ||
          (name.starts_with(kStep) && name.ends_with(kPartial)))
        removeFolder(entry->path());
    }
  } catch (...) {
    ::close(lock);
    throw;
  }
}

CheckpointFolder::~CheckpointFolder() { ::close(lock); }

std::string CheckpointFolder::publish(const std::string &partial,
                                      uint64_t step) const {
  const std::string complete = path + "/" + stepName(step);
  syncFolder(partial);
  if (std::rename(partial.c_str(), complete.c_str()) != 0)
    fail("cannot rename '" + partial + "' to '" + complete + "'",
         program::reasonOf(errno));
  syncFolder(path);
  return complete;
}

std::string CheckpointFolder::keepNewest(uint64_t count) const {
  if (count == 0)
    return {};
  try {
    const std::vector<SavedStep> found = checkpointsIn(path);
    std::string problem;
    for (size_t i = 0; i + count < found.size(); ++i)
      if (const std::string each = removeCheckpoint(found[i]); problem.empty())
        problem = each;
    return problem;
  } catch (const std::exception &error) {
    return error.what();
  }
}

std::string chimera::runtime::partialFolder(const std::string &folder,
                                            uint64_t step, uint64_t nonce) {
  char text[40];
  std::snprintf(text, sizeof text, ".%016llx",
                static_cast<unsigned long long>(nonce));
  return folder + "/" + stepName(step) + text + std::string(kPartial);
}

std::string chimera::runtime::removeFolder(const std::string &folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  return error ? "cannot remove '" + folder + "': " + error.message() : "";
}

void chimera::runtime::syncFolder(const std::string &folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0)
    fail("cannot open '" + folder + "'", program::reasonOf(errno));
  const int status = ::fsync(opened);
  const int code = errno;
  ::close(opened);
  // Some file systems cannot sync a folder, and need not.
  if (status != 0 && code != EINVAL)
    fail("cannot sync '" + folder + "'", program::reasonOf(code));
}
