//===- RunFiles.cpp - Which files a run reads and writes ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/RunFiles.h"

#include "runtime/program/Output.h"
#include "runtime/program/Room.h"
#include "runtime/stage/torch/Weights.h"
#include "runtime/train/LogFile.h"

#include <stdexcept>

using namespace chimera;

namespace {
struct File {
  const char *use;
  std::string path;
};
} // namespace

void chimera::checkFiles(const RunSettings &settings) {
  std::vector<File> files = {{"the program", settings.program},
                             {"--load", settings.load},
                             {"--names", settings.names},
                             {"standard output", "/dev/stdout"},
                             {"standard error", "/dev/stderr"}};
  for (const std::string &data : settings.data)
    files.push_back({"--data", data});
  auto add = [&](const char *use, const std::string &path) {
    for (const File &other : files)
      if (program::areSameFile(other.path, path))
        throw std::invalid_argument(
            std::string("expected different files, got '") + other.path +
            "' for " + other.use + " and '" + path + "' for " + use);
    files.push_back({use, path});
  };
  for (const auto &[use, path] : {File{"--save", settings.save},
                                  {"--save-gradients", settings.saveGradients},
                                  {"--profile", settings.profile},
                                  {"--trace", settings.trace},
                                  {"--calibrate", settings.calibrate},
                                  {"--log", settings.log}}) {
    if (path.empty())
      continue;
    if (std::string problem = program::checkOutput(path); !problem.empty())
      throw std::runtime_error(problem);
    add(use, path);
  }
  if (!settings.log.empty() && program::isRegularOrNew(settings.log))
    add("the growing --log", runtime::partOf(settings.log));
}

void chimera::checkRoom(const RunSettings &settings,
                        const program::ProgramT &program,
                        const runtime::WeightNames &names) {
  std::vector<program::PlannedFile> files;
  for (const std::string *file : {&settings.save, &settings.saveGradients})
    if (!file->empty())
      files.push_back({*file, runtime::weightsFileBytes(program, names)});
  if (std::string problem = program::checkRoom(files); !problem.empty())
    throw std::runtime_error(problem);
}
