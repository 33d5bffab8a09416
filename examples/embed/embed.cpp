// Runs three steps of a compiled program in this process, with one thread per
// rank: embed PROGRAM. These stages compute on integers. For stages of
// LibTorch, link the CMake target chimera::graph.
#include "runtime/model/ExactStage.h"
#include "runtime/proof/ProvenFile.h"
#include "runtime/train/Run.h"
#include <cstdio>
using namespace chimera;

int main(int count, char **arguments) try {
  if (count != 2)
    throw std::invalid_argument("expected the name of a program file");
  std::string error;
  auto program = program::readProgramFile(arguments[1], error);
  if (!program)
    throw std::runtime_error(error);
  runtime::SyntheticData data(program->seed);
  runtime::runInProcess({.program = *program,
                         .stages = runtime::makeExactStage,
                         .data = data,
                         .steps = 3,
                         .onStep = [](const runtime::StepEvent &event) {
                           std::printf("%.17g\n", event.loss->mean);
                         }});
} catch (const std::exception &error) {
  std::fprintf(stderr, "embed: %s\n", error.what());
  return 1;
}
