//===- Fields.h - Changes of any field of a program -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_FUZZ_FIELDS_H
#define CHIMERA_TEST_RUNTIME_FUZZ_FIELDS_H

#include "runtime/device/simulated/Random.h"
#include "runtime/program/Program.h"

#include <vector>

namespace chimera::fuzz {

using runtime::simulated::Random;

/// Makes one random change of `program`: it changes one field of one table;
/// removes, repeats or exchanges entries of one list; changes a size at all
/// places that state it; or makes one of the changes of `hostile-mutate`. Also
/// works on programs that verifyProgram refuses.
void makeRandomChange(program::ProgramT &program, Random &random);

/// The bytes of a new program file: a valid program with few or many workers
/// and micro-batches, a program of LargePrograms.h, or a file of
/// AliasedFiles.h.
std::vector<std::byte> makeFile(Random &random);

} // namespace chimera::fuzz

#endif // CHIMERA_TEST_RUNTIME_FUZZ_FIELDS_H
