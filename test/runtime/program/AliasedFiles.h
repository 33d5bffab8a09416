//===- AliasedFiles.h - Files that refer to one thing often -----*- C++ -*-===//
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

/// Bytes of a program file, with a right header, whose list of files names one
/// text of a megabyte so many times, or whose list of workers, pipelines or
/// communicators one entry with nothing in it.
std::vector<std::byte> aliasedText(size_t times);
std::vector<std::byte> aliasedWorker(size_t times);
std::vector<std::byte> aliasedPipeline(size_t times);
std::vector<std::byte> aliasedCommunicator(size_t times);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_ALIASEDFILES_H
