//===- Timeouts.h - Timeouts on a busy machine ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test of a timeout gives a run a short timeout. On a busy machine, the start
// of the run, or a wait that should succeed, may exceed this timeout. The test
// then repeats the run with longer timeouts. It passes if one of these runs
// gives the expected result.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_TIMEOUTS_H
#define CHIMERA_TEST_RUNTIME_TIMEOUTS_H

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace chimera::runtime::test {

/// A timeout for waits that must not time out. A wait that exceeds it would
/// never end.
inline constexpr std::chrono::seconds kPatience(100);

/// How long a rank hangs in a test whose waits time out after `timeout`. A test
/// waits until the rank ends, so the rank does not hang much longer than
/// `timeout`.
inline std::chrono::milliseconds hangOf(std::chrono::milliseconds timeout) {
  return std::min<std::chrono::milliseconds>(6 * timeout,
                                             timeout + std::chrono::seconds(2));
}

/// The time as messages print it, for example "0.2 s".
inline std::string secondsOf(std::chrono::milliseconds time) {
  std::ostringstream text;
  text << static_cast<double>(time.count()) / 1000 << " s";
  return text.str();
}

/// Calls `run` with `timeout`, then with 4, 16 and 64 times `timeout`, until
/// the returned text contains `meant`. A {} in `meant` stands for the timeout
/// of the call. Returns the text of the last call. The test fails if no text
/// contains `meant`.
template <typename Run>
std::string retryUntilMessage(const std::string &meant,
                              std::chrono::milliseconds timeout, Run run) {
  std::string text;
  for (int i = 0; i < 4; ++i, timeout *= 4) {
    std::string expected = meant;
    if (size_t at = expected.find("{}"); at != std::string::npos)
      expected.replace(at, 2, secondsOf(timeout));
    text = run(timeout);
    if (text.find(expected) != std::string::npos)
      return text;
    if (i == 3)
      ADD_FAILURE() << text << "\nlacks " << expected;
  }
  return text;
}

/// Calls `run` with `timeout`, then with 4, 16 and 64 times `timeout`, until it
/// returns an empty string (no error). The test fails if every call returns an
/// error.
template <typename Run>
void retryUntilSuccess(std::chrono::milliseconds timeout, Run run) {
  std::string wrong;
  for (int i = 0; i < 4; ++i, timeout *= 4)
    if (wrong = run(timeout); wrong.empty())
      return;
  ADD_FAILURE() << wrong;
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_TIMEOUTS_H
