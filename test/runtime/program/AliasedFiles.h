//===- AliasedFiles.h - Files that repeat one object ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_ALIASEDFILES_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_ALIASEDFILES_H

#include <cstddef>
#include <vector>

namespace chimera::program {

/// The bytes of a program file with a right header. Either its list of files
/// names one text of a megabyte `times` times, or its list of workers,
/// pipelines or communicators names one empty entry so often.
std::vector<std::byte> aliasedText(size_t times);
std::vector<std::byte> aliasedWorker(size_t times);
std::vector<std::byte> aliasedPipeline(size_t times);
std::vector<std::byte> aliasedCommunicator(size_t times);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_ALIASEDFILES_H
