//===- SoftwareGpu.h - CUDA, NVRTC and NCCL without a GPU -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linked instead of libcudart, libnvrtc and libnccl, for tests: the functions
// of those that chimera calls, on devices whose memory is the host's and whose
// streams are threads. This header is what tests include.
//
// A stream's thread learns from other threads only what an event, or the other
// ends of a communication, tell it; so ThreadSanitizer finds operations that
// use the same memory and that nothing orders. The default stream executes at
// once, on the thread that calls. Nothing may be called from a function that
// cudaLaunchHostFunc put on a stream.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_SOFTWAREGPU_H
#define CHIMERA_TEST_RUNTIME_CUDA_SOFTWAREGPU_H

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace chimera::runtime::test {

/// Forgets errors, records and settings, and numbers streams, events and
/// communicators from 1 again. Waits for streams that have been destroyed, and
/// after a failure for all. What is alive stays.
void reset();

/// 8 of 1 GiB and compute capability 9.0 unless a test says otherwise, while
/// nothing is allocated.
void setDevices(int count, size_t memoryBytes, int capability = 90);
/// Whether ranks of a communicator may have the same device, which NCCL
/// refuses. Not unless a test says so.
void allowSharedDevices(bool allow);
/// Streams that are made from now on wait a little before some operations,
/// which ones `seed` decides; for 0 they do not. Initially 1.
void setDelays(uint64_t seed);

/// Whether calls are recorded. Not unless a test says so.
void recordCalls(bool record);
/// The recorded ones in order, as "cudaMemcpyAsync 400 H2D stream 2". Those
/// that only ask, as cudaEventQuery and ncclCommGetAsyncError, are left out.
std::vector<std::string> calls();
void clearCalls();

/// From now on, the call of the function `name` that comes after `after` others
/// returns `error` and does nothing.
void failCall(const std::string &name, int error, int after = 0);
/// The next operation that a stream executes fails: neither it nor any later
/// one is executed, and nearly all calls return `error` until reset().
void failExecution(cudaError_t error);

/// While held, streams execute nothing.
void hold(bool held);
/// Puts work on a stream.
void putOn(cudaStream_t stream, std::function<void()> work);

size_t liveAllocations();
size_t liveHostAllocations();
size_t liveStreams();
size_t liveEvents();
size_t liveCommunicators();

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_SOFTWAREGPU_H
