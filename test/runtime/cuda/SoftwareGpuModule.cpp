//===- SoftwareGpuModule.cpp - A CUDA module without a GPU ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The CUDA module that chimera-run loads, on the software GPU. The ranks are
// threads. Stages of tensors compute with host tensors over the memory of the
// software GPU, on the threads of its streams. The environment variable
// CHIMERA_STAND_IN_GPUS is the number of GPUs.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CudaModule.h"
#include "runtime/train/cuda/Accelerator.h"
#include "test/runtime/cuda/RecordedGraphs.h"
#include "test/runtime/cuda/SoftwareGpu.h"

#include <ATen/Parallel.h>

#include <cstdlib>

using namespace chimera::runtime;

/// Enqueues work that computes with one thread.
static void enqueue(cudaStream_t stream, std::function<void()> work) {
  test::enqueueOn(stream, [work = std::move(work)] {
    at::set_num_threads(1);
    work();
  });
}

extern "C" __attribute__((visibility("default"))) Accelerator *
chimeraMakeAccelerator7(const AcceleratorOptions &options) {
  if (const char *gpus = std::getenv("CHIMERA_STAND_IN_GPUS"))
    test::setDevices(std::atoi(gpus), size_t{1} << 30);
  TensorLibrary library;
  if (!options.stagesOnHost)
    library = {.hasCudaTensors = false,
               .enqueue = enqueue,
               .makeGraphFactory = test::makeRecordedGraphs};
  return makeCudaAccelerator(options, library).release();
}
