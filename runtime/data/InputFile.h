//===- InputFile.h - A regular file that is open for reading ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_INPUTFILE_H
#define CHIMERA_RUNTIME_DATA_INPUTFILE_H

#include "runtime/device/Bytes.h"

#include <cstdint>
#include <string>

namespace chimera::runtime {

/// A regular file that is open for reading. It is not mapped into memory, so a
/// file that shrinks causes an error and not a signal. Several threads may read
/// at the same time.
class InputFile {
public:
  /// Opens `path`. `failure` is the start of all error messages, for example
  /// "cannot read the array in": "cannot read the array in 'PATH': WHY". Throws
  /// std::runtime_error if the file cannot be opened or is no regular file.
  InputFile(const std::string &path, const std::string &failure);
  ~InputFile();
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&other) = delete;

  const std::string &path() const { return name; }
  /// The size in bytes when the file was opened.
  uint64_t size() const { return bytes; }

  /// Fills `memory` from byte `begin` of the file on. Throws std::runtime_error
  /// if reading fails or if the file ends before.
  void read(uint64_t begin, Bytes memory) const;

  /// Throws std::runtime_error with the message above.
  [[noreturn]] void fail(const std::string &why) const;

private:
  std::string name, failure;
  int descriptor;
  uint64_t bytes = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_INPUTFILE_H
