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

/// Changes one field of one table of `program`; removes, repeats or exchanges
/// entries of one list; changes a size wherever it is stated; or makes one of
/// the changes of `hostile-mutate`. Also works on programs that verifyProgram
/// refuses.
void changeAnything(program::ProgramT &program, Random &random);

/// The bytes of a newly made program file: a valid program of few or many
/// parts, one of LargePrograms.h, or one of AliasedFiles.h.
std::vector<std::byte> makeFile(Random &random);

} // namespace chimera::fuzz

#endif // CHIMERA_TEST_RUNTIME_FUZZ_FIELDS_H
