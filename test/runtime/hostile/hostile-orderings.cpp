//===- hostile-orderings.cpp - Runs program files without one wait --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs each program file once without each ordering that the interpreter makes
// (Orderings.h). Compares the reports of the simulated devices with a graph.
// The last line of the output has the numbers of orderings and of needed
// orderings.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ProvenFile.h"
#include "test/runtime/hostile/Orderings.h"

#include <cstdio>
#include <span>

using namespace chimera;

int main(int argc, char **argv) {
  runtime::hostile::OrderingCounts counts;
  for (const char *file : std::span(argv + 1, static_cast<size_t>(argc - 1))) {
    std::string error;
    std::optional<program::ProgramT> program =
        program::readProgramFile(file, error);
    if (program)
      error = runtime::hostile::checkOrderings(*program, counts);
    if (!error.empty()) {
      std::printf("FAIL %s: %s\n", file, error.c_str());
      return 1;
    }
  }
  std::printf(
      "%d programs: each of %u orderings left out, %u of them needed and "
      "reported\n",
      argc - 1, counts.orderings, counts.needed);
}
