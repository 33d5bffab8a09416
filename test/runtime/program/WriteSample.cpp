//===- WriteSample.cpp - Writes a sample program to a file ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the program files for tests of chimera-run that do not need the
// compiler.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ProvenFile.h"
#include "test/runtime/program/SamplePrograms.h"

#include <CLI/CLI.hpp>
#include <cstdio>

using namespace chimera;

int main(int argc, char **argv) {
  CLI::App app("Writes a sample program", "write-sample");
  program::SampleOptions options;
  std::string file, timeUnit = "slot";
  app.add_option("FILE", file)->required();
  app.add_option("--workers", options.workers);
  app.add_option("--micro-batches", options.microBatches);
  app.add_option("--data-parallel", options.dataParallel);
  app.add_option("--boundary-bytes", options.boundaryBytes);
  app.add_option("--time-unit", timeUnit);
  app.add_flag("--bidirectional", options.bidirectional);
  app.add_flag("--split", options.splitBackward);
  app.add_flag("--begins-sums", options.firstBackwardOverwrites);
  app.add_flag("--model", options.ofModel);
  CLI11_PARSE(app, argc, argv);
  if (options.ofModel)
    options.vocabulary = 256;
  program::ProgramT program = program::samplePipeline(options);
  program.time_unit = timeUnit;
  std::string error;
  if (program::writeProgramFile(program, file, error))
    return 0;
  std::fprintf(stderr, "write-sample: %s\n", error.c_str());
  return 1;
}
