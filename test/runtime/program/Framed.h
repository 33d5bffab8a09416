//===- Framed.h - Adds the header of a program file -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_FRAMED_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_FRAMED_H

#include "runtime/program/File.h"

#include <cstring>

namespace chimera::program {

/// The bytes of a program file (File.h) with a correct header. The content is
/// `payload`, which need not be a program.
inline std::vector<std::byte> framed(std::span<const std::byte> payload) {
  uint32_t versions[] = {kMajorVersion, kMinorVersion};
  uint64_t sizes[] = {payload.size(), checksum(payload)};
  std::vector<std::byte> file(32 + payload.size());
  std::memcpy(file.data(), "CHIMERA\n", 8);
  std::memcpy(file.data() + 8, versions, 8);
  std::memcpy(file.data() + 16, sizes, 16);
  std::copy(payload.begin(), payload.end(), file.begin() + 32);
  return file;
}

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_FRAMED_H
