//===- Kernels.cpp - chimera's own kernels for the GPU --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Kernels.h"

#include "runtime/device/Fold.h"
#include "runtime/device/cuda/KernelSource.h"

#include <nvrtc.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

using namespace chimera::runtime;
using namespace chimera::runtime::cuda;

namespace {
// This number of blocks keeps a multiprocessor busy.
constexpr unsigned kBlocksOnProcessor = 8;

constexpr std::pair<cudaKernel_t Kernels::Loaded::*, const char *> kNames[] = {
    {&Kernels::Loaded::FoldFloat, "chimeraFoldFloat"},
    {&Kernels::Loaded::FoldDouble, "chimeraFoldDouble"},
    {&Kernels::Loaded::FoldBFloat16, "chimeraFoldBFloat16"},
    {&Kernels::Loaded::FoldInteger, "chimeraFoldInteger"},
    {&Kernels::Loaded::ScaleFloat, "chimeraScaleFloat"},
    {&Kernels::Loaded::ScaleDouble, "chimeraScaleDouble"},
    {&Kernels::Loaded::ScaleBFloat16, "chimeraScaleBFloat16"},
    {&Kernels::Loaded::AdamWFloat, "chimeraAdamWFloat"},
    {&Kernels::Loaded::AdamWDouble, "chimeraAdamWDouble"},
    {&Kernels::Loaded::AdamWBFloat16, "chimeraAdamWBFloat16"},
    {&Kernels::Loaded::KeepElements, "chimeraKeepElements"},
    {&Kernels::Loaded::DropFloat, "chimeraDropFloat"},
    {&Kernels::Loaded::DropDouble, "chimeraDropDouble"},
    {&Kernels::Loaded::DropBFloat16, "chimeraDropBFloat16"},
};

/// The argument of the folds, as in Kernels.cu.
struct Summands {
  const std::byte *begin[Kernels::kMaxSummands];
  int count;
};

void expectCompiled(nvrtcResult result, const char *call, nvrtcProgram program,
                    int capability) {
  if (result == NVRTC_SUCCESS)
    return;
  std::string log;
  size_t size = 0;
  if (program && nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS &&
      size > 1) {
    log.resize(size);
    nvrtcGetProgramLog(program, log.data());
    log.resize(size - 1); // without the final zero byte
  }
  throw std::runtime_error(
      "cannot compile kernels for a GPU of compute capability " +
      std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
      ": " + call + ": " + nvrtcGetErrorString(result) +
      (log.empty() ? "" : "\n" + log));
}

/// Compiles the kernels to machine code of the GPU.
std::vector<char> compile(int capability) {
  nvrtcProgram program = nullptr;
  auto expect = [&](nvrtcResult result, const char *call) {
    expectCompiled(result, call, program, capability);
  };
  expect(nvrtcCreateProgram(&program, kKernelSource, "Kernels.cu", 0, nullptr,
                            nullptr),
         "nvrtcCreateProgram");
  struct Destroy {
    nvrtcProgram &program;
    ~Destroy() { nvrtcDestroyProgram(&program); }
  } destroy{program};
  const std::string architecture =
      "--gpu-architecture=sm_" + std::to_string(capability);
  const char *options[] = {architecture.c_str(), "--std=c++17", "--fmad=false"};
  expect(nvrtcCompileProgram(program, std::size(options), options),
         "nvrtcCompileProgram");
  size_t size = 0;
  expect(nvrtcGetCUBINSize(program, &size), "nvrtcGetCUBINSize");
  std::vector<char> code(size);
  expect(nvrtcGetCUBIN(program, code.data()), "nvrtcGetCUBIN");
  return code;
}
} // namespace

Kernels::Loaded Kernels::load(int capability) {
  // Loaded kernels work on all GPUs of the same capability, and are never
  // unloaded.
  static std::mutex mutex;
  static std::map<int, Loaded> all;
  std::lock_guard lock(mutex);
  if (auto found = all.find(capability); found != all.end())
    return found->second;
  std::vector<char> code = compile(capability);
  cudaLibrary_t library = nullptr;
  expect(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0,
                             nullptr, nullptr, 0),
         "cudaLibraryLoadData");
  Loaded loaded{};
  for (const auto &[kernel, name] : kNames)
    expect(cudaLibraryGetKernel(&(loaded.*kernel), library, name),
           "cudaLibraryGetKernel");
  return all[capability] = loaded;
}

Kernels::Kernels(int ordinal) {
  auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    expect(cudaDeviceGetAttribute(&value, which, ordinal),
           "cudaDeviceGetAttribute");
    return value;
  };
  loaded = load(10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                attribute(cudaDevAttrComputeCapabilityMinor));
  // A query of a kernel's attributes loads the kernel. Otherwise CUDA would
  // load each kernel at its first launch, and would then wait for all running
  // operations of the GPU.
  for (const auto &[kernel, name] : kNames) {
    cudaFuncAttributes attributes{};
    expect(cudaFuncGetAttributes(&attributes, loaded.*kernel),
           "cudaFuncGetAttributes");
  }
  mostBlocks = kBlocksOnProcessor *
               static_cast<unsigned>(
                   std::max(1, attribute(cudaDevAttrMultiProcessorCount)));
}

void Kernels::fold(cudaStream_t stream, ElementType type,
                   const std::vector<ConstBytes> &contributions,
                   Bytes sum) const {
  if (contributions.size() > kMaxSummands)
    throw std::invalid_argument(
        "expected a sum of at most " + std::to_string(kMaxSummands) +
        " contributions on a GPU, got " + std::to_string(contributions.size()));
  Summands summands{};
  for (ConstBytes contribution : contributions)
    summands.begin[summands.count++] = contribution.data();
  cudaKernel_t kernel = type == ElementType::Float32    ? loaded.FoldFloat
                        : type == ElementType::Float64  ? loaded.FoldDouble
                        : type == ElementType::BFloat16 ? loaded.FoldBFloat16
                                                        : loaded.FoldInteger;
  uint64_t size = elementBytes(type);
  launch(kernel, stream, (sum.size() + size - 1) / size, summands, sum.data(),
         counted(sum.size()));
}

void Kernels::scale(cudaStream_t stream, ElementType type, Bytes bytes,
                    double factor) const {
  if (type == ElementType::UInt64)
    return; // integers have no fractions
  uint64_t count = bytes.size() / elementBytes(type);
  launch(type == ElementType::Float32   ? loaded.ScaleFloat
         : type == ElementType::Float64 ? loaded.ScaleDouble
                                        : loaded.ScaleBFloat16,
         stream, count, bytes.data(), counted(count), factor);
}
