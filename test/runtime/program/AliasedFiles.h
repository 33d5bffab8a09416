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

/// The bytes of a program file with a correct header, in which `times` entries
/// of one list refer to the same object. aliasedText: the list of files refers
/// to one text of 1 MiB. The others: the list of workers, pipelines or
/// communicators refers to one empty entry.
std::vector<std::byte> aliasedText(size_t times);
std::vector<std::byte> aliasedWorker(size_t times);
std::vector<std::byte> aliasedPipeline(size_t times);
std::vector<std::byte> aliasedCommunicator(size_t times);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_ALIASEDFILES_H
