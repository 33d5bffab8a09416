//===- RunFiles.cpp - Checks of the files of a run ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/RunFiles.h"

#include "runtime/data/ArrayFiles.h"
#include "runtime/data/MegatronIndex.h"
#include "runtime/model/weights/WeightFiles.h"
#include "runtime/program/DiskSpace.h"
#include "runtime/program/Output.h"
#include "runtime/train/CheckpointedSteps.h"
#include "runtime/train/LogFile.h"

#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <unistd.h>
#include <vector>

using namespace chimera;

namespace {
struct File {
  const char *use;
  std::string path;
};

/// The files that --load may read if `load` is a folder or an index (.json):
/// all .safetensors and .json files of the folder.
std::vector<std::string> shardsOf(const std::string &load) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool isFolder = fs::is_directory(load, error);
  if (load.empty() || !(isFolder || load.ends_with(".json")))
    return {};
  const fs::path folder =
      isFolder ? fs::path(load) : fs::path(load).parent_path();
  std::vector<std::string> shards;
  for (fs::directory_iterator file(folder.empty() ? "." : folder, error), end;
       !error && file != end; file.increment(error))
    if (const std::string name = file->path().filename();
        name.ends_with(".safetensors") || name.ends_with(".json"))
      shards.push_back(folder / name);
  return shards;
}
} // namespace

void chimera::checkFiles(const RunSettings &settings) {
  std::vector<File> files;
  auto add = [&](const char *use, const std::string &path) {
    for (const File &other : files)
      if (program::areSameFile(other.path, path))
        throw std::invalid_argument(
            std::string("expected different files, got '") + other.path +
            "' for " + other.use + " and '" + path + "' for " + use);
    files.push_back({use, path});
  };
  // If a file were given twice, some of its samples would be both trained on
  // and held out. But two fields of a sample may have the same array.
  struct ArrayOf {
    const char *use;
    runtime::ArrayFileName name;
  };
  std::vector<ArrayOf> arrays;
  std::vector<File> indices;
  const auto addSamples = [&](const char *use, const char *useOfIndex,
                              const std::string &file) {
    const auto array = runtime::parseArrayFile(file);
    if (!array) {
      add(use, file);
      indices.push_back({useOfIndex, runtime::MegatronIndex::pathBeside(file)});
      return;
    }
    for (const ArrayOf &other : arrays)
      if (other.name.field == array->field &&
          program::areSameFile(other.name.path, array->path))
        throw std::invalid_argument(
            std::string("expected different files for each field, got '") +
            other.name.path + "' for " + other.use + " and '" + array->path +
            "' for " + use);
    arrays.push_back({use, *array});
  };
  for (const std::string &file : settings.data)
    addSamples("--data", "--data's index", file);
  for (const std::string &file : settings.validation)
    addSamples("--validation", "--validation's index", file);
  for (const ArrayOf &array : arrays)
    files.push_back({array.use, array.name.path});
  files.insert(files.end(), indices.begin(), indices.end());
  files.insert(files.end(), {{"the program", settings.program},
                             {"--load", settings.load},
                             {"--names", settings.names},
                             {"standard output", "/dev/stdout"},
                             {"standard error", "/dev/stderr"}});
  for (const std::string &shard : shardsOf(settings.load))
    files.push_back({"--load", shard});
  // --load may name the last finite weights of an earlier run. That is safe,
  // because the file stays open until a new file takes its name.
  const std::string lastFinite = lastFiniteFile(settings.save);
  for (const auto &[use, path] :
       {File{"--save", settings.save},
        {"--save-gradients", settings.saveGradients},
        {"--profile", settings.profile},
        {"--trace", settings.trace},
        {"--calibrate", settings.calibrate},
        {"the last finite weights of --save",
         program::areSameFile(lastFinite, settings.load) ? "" : lastFinite},
        {"--log", settings.log}}) {
    if (path.empty())
      continue;
    if (std::string problem = program::checkOutput(path); !problem.empty())
      throw std::runtime_error(problem);
    add(use, path);
  }
  for (const auto &[option, folder] :
       {File{"--checkpoint", settings.checkpoint},
        {"--tensorboard", settings.tensorboard}}) {
    if (folder.empty())
      continue;
    add(option, folder);
    std::error_code error;
    const auto status = std::filesystem::status(folder, error);
    if (std::filesystem::exists(status) &&
        !std::filesystem::is_directory(status))
      throw std::invalid_argument(std::string(option) +
                                  ": expected a folder, got the file '" +
                                  folder + "'");
  }
  std::error_code differs;
  if (!settings.checkpoint.empty() && !settings.tensorboard.empty() &&
      std::filesystem::equivalent(settings.checkpoint, settings.tensorboard,
                                  differs))
    throw std::invalid_argument("expected different folders, got '" +
                                settings.checkpoint +
                                "' for --checkpoint and '" +
                                settings.tensorboard + "' for --tensorboard");
  if (!settings.log.empty() && program::isRegularOrNew(settings.log))
    add("the growing --log", runtime::temporaryName(settings.log));
}

std::string chimera::lastFiniteFile(const std::string &save) {
  return !save.empty() && program::isRegularOrNew(save) ? save + ".last-finite"
                                                        : "";
}

/// Throws std::runtime_error if there is no room for a checkpoint in `folder`,
/// which may be new.
static void checkRoomForCheckpoint(const std::string &folder,
                                   const program::ProgramT &program) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  for (uint32_t rank = 0; rank < program::rankCount(program); ++rank)
    bytes += runtime::checkpointCopyBytes(program, rank);
  std::error_code error;
  fs::path existing = fs::absolute(folder, error);
  while (!existing.empty() && !fs::exists(existing, error) &&
         existing != existing.parent_path())
    existing = existing.parent_path();
  const fs::space_info space = fs::space(existing, error);
  // Some file systems do not report their size.
  if (error || space.capacity == 0)
    return;
  const uint64_t room = geteuid() == 0 ? space.free : space.available;
  if (bytes > room)
    throw std::runtime_error(
        folder + ": expected room for " + std::to_string(bytes) +
        " bytes of a checkpoint on the file system, got " +
        std::to_string(room) +
        ": free some, such as old checkpoints (--keep), or write elsewhere");
}

void chimera::checkDiskSpace(const RunSettings &settings,
                             const program::ProgramT &program,
                             const runtime::WeightNames &names) {
  std::vector<program::PlannedFile> files;
  for (const std::string *file : {&settings.save, &settings.saveGradients})
    if (!file->empty())
      files.push_back({*file, runtime::weightsFileBytes(program, names)});
  if (std::string problem = program::checkDiskSpace(files); !problem.empty())
    throw std::runtime_error(problem);
  if (!settings.checkpoint.empty())
    checkRoomForCheckpoint(settings.checkpoint, program);
}
