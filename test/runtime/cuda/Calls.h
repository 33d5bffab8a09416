//===- Calls.h - Recorded calls and injected failures -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_CALLS_H
#define CHIMERA_TEST_RUNTIME_CUDA_CALLS_H

#include <cstdint>
#include <sstream>
#include <string>

namespace chimera::runtime::test {

template <typename... Parts> std::string text(const Parts &...parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

bool isRecording();
void record(std::string call);
/// The error that this call of the function `name` must return because a test
/// requested it (failCall), or 0 if there is none.
int faultOf(const char *name);
/// Every function of the software GPU calls this first. If calls are recorded,
/// records `name` and, after it, the text that `detail` returns. Returns
/// faultOf(name).
template <typename Detail>
int beginCall(const char *name, const Detail &detail) {
  if (isRecording()) {
    std::string more = detail();
    record(more.empty() ? name : text(name, " ", more));
  }
  return faultOf(name);
}

/// The next number for an object of this kind. Records use it in the object's
/// name.
uint32_t newNumber(const std::string &kind);

/// Forgets records, failures that have not occurred yet, and numbers.
void forgetCalls();

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_CALLS_H
