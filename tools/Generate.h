//===- Generate.h - chimera-run --generate ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_GENERATE_H
#define CHIMERA_TOOLS_GENERATE_H

#include "runtime/program/Program.h"
#include "tools/RunSettings.h"

namespace chimera {

/// Continues the prompt with the program's model and the weights that the
/// settings say, by one process. A text goes to standard output with what
/// follows it; of tokens the numbers do, each a line. Throws std::exception
/// where the model cannot say what comes next, the prompt cannot be read, or
/// nobody reads the output any more.
void generateText(const RunSettings &settings,
                  const program::ProgramT &program);

} // namespace chimera

#endif // CHIMERA_TOOLS_GENERATE_H
