//===- SignsOfLife.h - The others wait while the root works -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After the last step the root gathers, saves and evaluates, for as long as
// that takes. The other ranks cannot limit the time of that work, but they can
// limit how long the root is silent. The root sends each of them a sign of life
// four times in a timeout, and a last one when it is done. A root that is
// stopped, dead or cut off sends no sign, whatever its host.
//
// The root's own thread sends the signs, because MPI may be called by no other,
// and a second thread does the work. Work that hangs is told from work that is
// slow by what the second thread does: it hangs if for the whole timeout it has
// not computed at all and waits for neither a core nor a device. So a pipe
// that nobody reads ends a run, a slow disk does not.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_SIGNSOFLIFE_H
#define CHIMERA_RUNTIME_TRAIN_SIGNSOFLIFE_H

#include "runtime/control/Control.h"

#include <exception>
#include <functional>

namespace chimera::runtime {

/// Used by the root, after the last other message that it sends to any rank.
class SignsOfLife {
public:
  /// `control` must outlive this.
  SignsOfLife(Control &control, std::chrono::milliseconds timeout);

  /// Sends a sign if it is time for one. Does not wait until the others hear
  /// it. Errors are kept for sendLast.
  void sendIfDue();

  /// Calls `work` on another thread, or on this one if there cannot be another,
  /// and sends signs until it returns. Throws what `work` throws. Work that
  /// hangs is told to `onHang`, once, with the reason; if that returns, this
  /// goes on waiting.
  void during(const std::function<void()> &work,
              const std::function<void(const std::string &)> &onHang);

  /// Tells the others that the root is done, and waits until all have heard.
  /// Throws what waits throw. To be called once, as the last.
  void sendLast();

private:
  using Clock = std::chrono::steady_clock;

  Control &control;
  const std::chrono::milliseconds timeout;
  const std::chrono::milliseconds period;
  Clock::time_point next;
  std::exception_ptr failure;
};

/// At every other rank: returns when `root` has sent its last sign. Throws what
/// waits throw, that is after `timeout` without a sign, or half a second more
/// without the first.
void awaitLastSign(Control &control, uint32_t root,
                   std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_SIGNSOFLIFE_H
