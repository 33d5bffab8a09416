//===- AbortNotifier.h - Reports an abort to a handler ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_ABORTNOTIFIER_H
#define CHIMERA_RUNTIME_CONTROL_ABORTNOTIFIER_H

#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace chimera::runtime {

/// Calls a handler with the reason of the first `notify`. `notify` and
/// `setHandler` may be called in either order.
class AbortNotifier {
public:
  using Handler = std::function<void(const std::string &)>;

  void notify(const std::string &reason) {
    std::lock_guard lock(mutex);
    if (abortReason)
      return;
    abortReason = reason;
    if (handler)
      handler(reason);
  }

  void setHandler(Handler next) {
    std::lock_guard lock(mutex);
    handler = std::move(next);
    if (handler && abortReason)
      handler(*abortReason);
  }

private:
  std::mutex mutex; ///< held during calls, so setHandler waits for them
  Handler handler;
  std::optional<std::string> abortReason;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_ABORTNOTIFIER_H
