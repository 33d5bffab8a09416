//===- CallMark.h - The library call of a thread ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some libraries (MPI, CUDA, NCCL) have calls without a timeout. If such a call
// never returns, its thread cannot report the problem. So the thread marks the
// beginning and the end of each call, at the cost of a few stores. Another
// thread polls the mark and reports a call that lasts too long.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CALLMARK_H
#define CHIMERA_RUNTIME_SYSTEM_CALLMARK_H

#include <atomic>
#include <cstdint>

namespace chimera::runtime {

/// The library call of a thread. Only one thread at a time may call `enter` and
/// `leave`. Any thread may call `read`.
class CallMark {
public:
  /// Marks the beginning of a call of the library function `name`. Requires
  /// that the text is never freed.
  void enter(const char *name) noexcept {
    number.store(number.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
    current.store(name, std::memory_order_release);
  }
  void leave() noexcept { current.store(nullptr, std::memory_order_release); }

  struct Call {
    const char *name = nullptr; ///< null if the thread is in no call
    uint64_t number = 0;        ///< of the call; valid if `name` is not null
    bool operator==(const Call &) const = default;
  };
  /// The current call. If two reads return the same name and number, the thread
  /// was in the same call at both times.
  Call read() const noexcept {
    const char *name = current.load(std::memory_order_acquire);
    return {name, number.load(std::memory_order_relaxed)};
  }

private:
  std::atomic<const char *> current{nullptr};
  std::atomic<uint64_t> number{0};
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_CALLMARK_H
