//===- Tensors.h - LibTorch's threads and memory ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Settings in LibTorch, for a process whose stages use it. This header includes
// no header of LibTorch.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_TENSORS_TENSORS_H
#define CHIMERA_RUNTIME_MODEL_TENSORS_TENSORS_H

#include "runtime/interpreter/MemoryMeter.h"

#include <cstdint>

namespace chimera::runtime {

/// Sets the number of threads (at least 1) for computations that the calling
/// thread starts. Every rank's thread calls this once before its first action.
/// The number belongs to the calling thread. Each thread has its own OpenMP
/// team, so ranks in one process together use the sum of their numbers of
/// threads. The runtime's own loops use the same threads (ParallelFor.h).
void setThreads(int threads);

/// Starts counting the bytes of CPU tensors. Call it once, from any thread,
/// before the first tensor is made; further calls do nothing. Counting costs 64
/// bytes and two atomic additions per tensor.
void countTensorBytes();

/// Bytes of living tensors that the calling thread has allocated since
/// countTensorBytes. When any thread frees a tensor, its bytes are subtracted.
/// Tensors over the caller's memory do not count. Between two instructions,
/// this is the size of the rank's stashes.
int64_t liveTensorBytes();

/// A limit on the size of each new CPU tensor of the calling thread, while this
/// object lives. Making a larger tensor throws std::runtime_error. Requires
/// countTensorBytes. If limits are nested, the innermost one applies.
class TensorLimit {
public:
  explicit TensorLimit(uint64_t mostBytes);
  ~TensorLimit();
  TensorLimit(const TensorLimit &) = delete;
  TensorLimit &operator=(const TensorLimit &) = delete;

private:
  uint64_t before;
};

/// A memory meter for the interpreter, which returns liveTensorBytes. The
/// constructor calls countTensorBytes.
class TensorMeter : public MemoryMeter {
public:
  TensorMeter() { countTensorBytes(); }
  int64_t currentBytes() const override { return liveTensorBytes(); }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_TENSORS_TENSORS_H
