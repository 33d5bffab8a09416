//===- SoftwareGpu.h - CUDA, NVRTC and NCCL without a GPU -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A software GPU for tests, linked instead of libcudart, libnvrtc and libnccl.
// It implements the functions of these libraries that chimera calls. The
// devices' memory is host memory, and their streams are threads. Tests include
// this header.
//
// A stream's thread synchronises with other threads only through events and
// communication. So ThreadSanitizer reports two operations that use the same
// memory if neither events nor communication order them. The default stream
// executes immediately, on the calling thread. A function that
// cudaLaunchHostFunc put on a stream must not call any of these functions.
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
/// communicators from 1 again. Waits for destroyed streams and, after a
/// failure, for all streams. Existing objects stay.
void resetSoftwareGpu();

/// Sets the devices. By default there are 8 with 1 GiB and compute capability
/// 9.0. Requires that nothing is allocated.
void setDevices(int count, size_t memoryBytes, int capability = 90);
/// Whether ranks of a communicator may have the same device, which NCCL
/// refuses. The default is false.
void allowSharedDevices(bool allow);
/// Makes new streams wait a little before some operations, which `seed`
/// selects; 0 for no delays. The default is 1.
void setDelays(uint64_t seed);

/// Whether calls are recorded. The default is false.
void recordCalls(bool record);
/// The recorded calls in order, like "cudaMemcpyAsync 400 H2D stream 2".
/// Queries, like cudaEventQuery and ncclCommGetAsyncError, are left out.
std::vector<std::string> calls();
void clearCalls();

/// Makes one later call of the function `name` return `error` and do nothing.
/// This is the next call if `after` is 0, the second one if `after` is 1, and
/// so on.
void failCall(const std::string &name, int error, int after = 0);
/// The next operation that any stream executes fails: neither this operation
/// nor any later one is executed, and nearly all calls return `error` until
/// resetSoftwareGpu().
void failExecution(cudaError_t error);

/// While `held`, streams execute nothing.
void holdStreams(bool held);
/// Sets a function that gets each kernel which this thread launches on the
/// default stream, as a function that runs the kernel again. Null for none.
using KernelRecorder = std::function<void(std::function<void()>)>;
void setKernelRecorder(KernelRecorder recorder);
/// Enqueues a function of the host on a stream.
void enqueueOn(cudaStream_t stream, std::function<void()> work);

size_t liveAllocations();
size_t liveHostAllocations();
size_t liveStreams();
size_t liveEvents();
size_t liveCommunicators();

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_SOFTWAREGPU_H
