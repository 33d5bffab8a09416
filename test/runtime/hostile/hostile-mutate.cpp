//===- hostile-mutate.cpp - Mutants of program files ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes mutants (random changes) of program files, and judges them (Judge.h).
// Names each mutant that is neither refused nor runs to the same integers as
// training on one device. Also names each mutant that keeps the meaning of its
// program but is refused. Prints for each kind of change how many mutants each
// rule of the verifier refused. Of the refused mutants, it prints how many
// would run to equal integers (needless). Of those refused for a deadlock, it
// prints how many would end if hosts did not wait (ending). If a mutant crashes
// or takes more than a minute, the program names it and ends.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ProvenFile.h"
#include "test/runtime/hostile/Judge.h"

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
const hostile::Judge *judged = nullptr;

void nameAndDie(int signal) {
  const char *what =
      signal == SIGALRM ? " takes more than a minute\n" : " crashes\n";
  for (const char *text : {"hostile-mutate: ", judged->current(), what})
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0)
      break;
  _exit(1);
}
} // namespace

int main(int argc, char **argv) {
  CLI::App app("Mutates programs", "hostile-mutate");
  std::vector<std::string> files;
  uint64_t mutants = 1000, first = 0;
  app.add_option("FILE", files)->required();
  app.add_option("--mutants", mutants, "how many, from --first on");
  app.add_option("--first", first, "the first mutant's number");
  std::string kinds = "Mutations:\n";
  for (const hostile::Mutation &each : hostile::mutations())
    kinds += std::string("  ") + each.name + ": " + each.summary +
             (each.keepsMeaning ? " (must be accepted)\n" : "\n");
  app.footer(kinds);
  CLI11_PARSE(app, argc, argv);

  std::vector<program::ProgramT> programs;
  for (const std::string &file : files) {
    std::string error;
    std::optional<program::ProgramT> program =
        program::readProgramFile(file, error);
    if (!program) {
      std::fprintf(stderr, "hostile-mutate: %s\n", error.c_str());
      return 1;
    }
    programs.push_back(std::move(*program));
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  hostile::Judge judge(std::move(programs));
  judged = &judge;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM})
    std::signal(signal, nameAndDie);
  for (uint64_t number = first; number < first + mutants; ++number) {
    alarm(60);
    std::string found = judge.judge(number);
    if (!found.empty())
      std::printf("FAIL %s\n", found.c_str());
  }
  std::printf("%s", judge.table().c_str());
  hostile::Counts total = judge.total();
  std::printf("%zu programs, %" PRIu64 " mutants, %" PRIu64 " wrong\n",
              files.size(), total.all(), total.wrong);
  return total.wrong != 0;
}
