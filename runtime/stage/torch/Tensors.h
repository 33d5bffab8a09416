//===- Tensors.h - LibTorch's threads and memory ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a process that runs transformer stages has to say to LibTorch, without
// LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TENSORS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TENSORS_H

#include "runtime/interpreter/MemoryMeter.h"

#include <cstdint>

namespace chimera::runtime {

/// Computations that the calling thread starts use `threads` threads (at least
/// 1) from now on. Every rank's thread calls it once before its first action:
/// the number is a property of the calling thread, and each one has an OpenMP
/// team of its own, so ranks in one process need the sum of theirs. The
/// runtime's own loops use them too (Ranges.h).
void setThreads(int threads);

/// From now on CPU tensors are counted. Call it once, before the first tensor
/// is made, from any thread; more calls do nothing. It costs 64 bytes and two
/// atomic additions a tensor.
void countTensorBytes();

/// Bytes of the living tensors that the calling thread has allocated, whoever
/// frees them, since countTensorBytes. Between two instructions this is what
/// the rank's stashes hold; tensors over the caller's bytes do not count.
int64_t liveTensorBytes();

/// While it lives, no CPU tensor that the calling thread makes may have more
/// than `mostBytes`: making it throws std::runtime_error. Holds since
/// countTensorBytes. The innermost one counts.
class TensorLimit {
public:
  explicit TensorLimit(uint64_t mostBytes);
  ~TensorLimit();
  TensorLimit(const TensorLimit &) = delete;
  TensorLimit &operator=(const TensorLimit &) = delete;

private:
  uint64_t before;
};

/// That number as the interpreter asks for it. Counting begins with it.
class TensorMeter : public MemoryMeter {
public:
  TensorMeter() { countTensorBytes(); }
  int64_t currentBytes() const override { return liveTensorBytes(); }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TENSORS_H
