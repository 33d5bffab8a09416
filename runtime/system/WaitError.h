//===- WaitError.h - A wait for other ranks that failed ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_WAITERROR_H
#define CHIMERA_RUNTIME_SYSTEM_WAITERROR_H

#include <stdexcept>
#include <string>

namespace chimera::runtime {

/// Thrown if a wait for other ranks timed out, or if another rank aborted the
/// run.
class WaitError : public std::runtime_error {
public:
  enum class Reason { TimedOut, Aborted };
  WaitError(Reason reason, const std::string &message)
      : std::runtime_error(message), reason(reason) {}
  Reason reason;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_WAITERROR_H
