//===- Printable.h - Texts that are safe to print ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that find and replace control characters. Anyone can write the
// names in a program file, and a terminal executes control characters in a text
// that it prints. So the texts of a program must not contain control
// characters.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_PRINTABLE_H
#define CHIMERA_RUNTIME_PROGRAM_PRINTABLE_H

#include <string>
#include <string_view>

namespace chimera::program {

/// Whether `text` is UTF-8 without control characters and without characters
/// that change the direction of the text around them.
bool isPrintable(std::string_view text);

/// A copy of `text` in which each byte that is not part of a printable
/// character is written as \xNN.
std::string printable(std::string_view text);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PRINTABLE_H
