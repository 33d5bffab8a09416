//===- InputFile.cpp - A regular file that is open for reading ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/InputFile.h"

#include "runtime/system/ReadAt.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

InputFile::InputFile(const std::string &path, const std::string &failure)
    : name(path), failure(failure),
      // Without O_NONBLOCK, opening a pipe would wait for a writer.
      descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor < 0)
    fail(std::strerror(errno));
  struct stat status;
  std::string why;
  if (::fstat(descriptor, &status) != 0)
    why = std::strerror(errno);
  else if (!S_ISREG(status.st_mode))
    why = "expected a file";
  if (!why.empty()) {
    ::close(descriptor);
    fail(why);
  }
  bytes = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

InputFile::InputFile(InputFile &&other) noexcept
    : name(std::move(other.name)), failure(std::move(other.failure)),
      descriptor(std::exchange(other.descriptor, -1)), bytes(other.bytes) {}

void InputFile::fail(const std::string &why) const {
  throw std::runtime_error(failure + " '" + name + "': " + why);
}

void InputFile::read(uint64_t begin, Bytes memory) const {
  const ssize_t count = readAt(descriptor, begin, memory);
  if (count < 0)
    fail(std::strerror(errno));
  if (static_cast<size_t>(count) < memory.size())
    fail("it was truncated while it was read");
}
