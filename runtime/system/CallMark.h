//===- CallMark.h - Which library call a thread is inside -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call of a library that knows no timeout may never return, and then its
// thread can tell nobody. The thread marks each such call, which costs it a few
// stores, and another thread looks from time to time whether it is still the
// same call.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CALLMARK_H
#define CHIMERA_RUNTIME_SYSTEM_CALLMARK_H

#include <atomic>
#include <cstdint>

namespace chimera::runtime {

/// Of one thread at a time; any other may look.
class CallMark {
public:
  /// The thread is about to make a call. `name` must live for ever.
  void enter(const char *name) noexcept {
    number.store(number.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
    current.store(name, std::memory_order_release);
  }
  void leave() noexcept { current.store(nullptr, std::memory_order_release); }

  struct Seen {
    const char *name = nullptr; ///< null: in no call
    uint64_t number = 0;        ///< of the call, if it is in one
    bool operator==(const Seen &) const = default;
  };
  /// If two looks in turn see the same name and number, the thread was inside
  /// that call at both of them.
  Seen look() const noexcept {
    const char *name = current.load(std::memory_order_acquire);
    return {name, number.load(std::memory_order_relaxed)};
  }

private:
  std::atomic<const char *> current{nullptr};
  std::atomic<uint64_t> number{0};
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_CALLMARK_H
