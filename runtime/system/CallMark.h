//===- CallMark.h - The library call of a thread ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some libraries (MPI, CUDA, NCCL) have calls without a timeout. If such a call
// never returns, its thread cannot report that. So the thread marks the
// beginning and the end of each call, at the cost of a few stores. Another
// thread polls the mark and notices if one call lasts too long.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CALLMARK_H
#define CHIMERA_RUNTIME_SYSTEM_CALLMARK_H

#include <atomic>
#include <cstdint>

namespace chimera::runtime {

/// Written by one thread at a time. Any thread may read it.
class CallMark {
public:
  /// Marks the beginning of a call. Requires that `name` is never freed.
  void enter(const char *name) noexcept {
    number.store(number.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
    current.store(name, std::memory_order_release);
  }
  void leave() noexcept { current.store(nullptr, std::memory_order_release); }

  struct Call {
    const char *name = nullptr; ///< null: the thread is in no call
    uint64_t number = 0;        ///< counts the calls; valid only inside a call
    bool operator==(const Call &) const = default;
  };
  /// If two successive reads return the same name and number, the thread was
  /// inside the same call at both times.
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
