//===- Patience.h - Timeouts on a busy machine ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test of a timeout gives the waits of a run a short one. Beside other work
// some other wait, or the start, may take longer than that. Then nothing is
// wrong, and the test tries again with a longer timeout: what it looks at has
// to happen with one of them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PATIENCE_H
#define CHIMERA_TEST_RUNTIME_PATIENCE_H

#include <chrono>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace chimera::runtime::test {

/// For waits that end by themselves: only a hang takes longer.
inline constexpr std::chrono::seconds kPatience(100);

/// "0.2 s", as messages have it.
inline std::string secondsOf(std::chrono::milliseconds time) {
  std::ostringstream text;
  text << static_cast<double>(time.count()) / 1000 << " s";
  return text.str();
}

/// Calls `run` with `timeout`, and while what it returns does not contain
/// `meant`, with 4, 16 and 64 times as much. In `meant` the timeout is called
/// {}. Expects that it is contained at last, and returns that text.
template <typename Run>
std::string untilItSays(const std::string &meant,
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

/// The same of a `run` that returns what went wrong, which at last is nothing.
template <typename Run>
void untilItSucceeds(std::chrono::milliseconds timeout, Run run) {
  std::string wrong;
  for (int i = 0; i < 4; ++i, timeout *= 4)
    if (wrong = run(timeout); wrong.empty())
      return;
  ADD_FAILURE() << wrong;
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_PATIENCE_H
