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

/// Continues the prompt with the program's model and the weights of --load, in
/// this process. If tokens are bytes, prints the prompt and its continuation as
/// text. Otherwise prints the numbers of the new tokens, one per line. Throws
/// std::exception if the model cannot predict the next token, if the prompt
/// cannot be read, or if standard output cannot be written.
void generateText(const RunSettings &settings,
                  const program::ProgramT &program);

} // namespace chimera

#endif // CHIMERA_TOOLS_GENERATE_H
