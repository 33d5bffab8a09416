//===- WriteHostile.cpp - Writes a file that must be refused --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes program files with a correct header that no tool of chimera would
// write. They are for tests of the tools that read program files.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"
#include "test/runtime/program/AliasedFiles.h"
#include "test/runtime/program/LargePrograms.h"
#include "test/runtime/program/SamplePrograms.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <functional>
#include <map>

using namespace chimera::program;

int main(int argc, char **argv) {
  const std::map<std::string, std::function<std::vector<std::byte>()>> kinds = {
      {"arena",
       [] {
         ProgramT program = samplePipeline({.workers = 2, .microBatches = 2});
         chainBuffersToTheEnd(*program.workers[0]);
         return serialize(program);
       }},
      {"aliases-300", [] { return aliasedText(300); }},
      {"aliases-100000", [] { return aliasedText(100000); }},
      {"ranks",
       [] {
         ProgramT program = samplePipeline({.workers = 2, .microBatches = 2});
         program.data_parallel = 100000000;
         return serialize(program);
       }},
      {"name", [] {
         ProgramT program = samplePipeline({.workers = 2, .microBatches = 2});
         program.schedule = "\x1b[2Jgone";
         return serialize(program);
       }}};
  CLI::App app("Writes a program file that must be refused", "write-hostile");
  std::string kind, file;
  app.add_option("KIND", kind)->required()->check(CLI::IsMember(&kinds));
  app.add_option("FILE", file)->required();
  CLI11_PARSE(app, argc, argv);
  std::vector<std::byte> bytes = kinds.at(kind)();
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return 0;
}
