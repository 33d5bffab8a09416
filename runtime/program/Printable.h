//===- Printable.h - Texts that a terminal shows as they are ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names in a program file may come from anyone. A terminal obeys control
// characters in what it prints, so the texts of a program must have none.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_PRINTABLE_H
#define CHIMERA_RUNTIME_PROGRAM_PRINTABLE_H

#include <string>
#include <string_view>

namespace chimera::program {

/// Whether `text` is UTF-8 without control characters and without characters
/// that change the direction of what is around them.
bool isPrintable(std::string_view text);

/// `text` with every byte of anything else written as \xNN.
std::string printable(std::string_view text);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PRINTABLE_H
