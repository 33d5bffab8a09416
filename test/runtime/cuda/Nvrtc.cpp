//===- Nvrtc.cpp - NVRTC without a GPU ------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/KernelsOnHost.h"

#include <nvrtc.h>

#include <cstring>

using namespace chimera::runtime::test;

namespace {
/// A program to compile. The source does not matter: the result always has the
/// kernels of kernelsOnHost().
struct Program {
  bool isCompiled = false;
  std::string log;
};
Program &programOf(nvrtcProgram handle) {
  return *reinterpret_cast<Program *>(handle);
}
} // namespace

extern "C" {

nvrtcResult nvrtcVersion(int *major, int *minor) {
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return NVRTC_SUCCESS;
}
const char *nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_SUCCESS             ? "NVRTC_SUCCESS"
         : result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                             : "NVRTC_ERROR_INTERNAL_ERROR";
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram *made, const char *,
                               const char *name, int, const char *const *,
                               const char *const *) {
  int error = beginCall("nvrtcCreateProgram", [&] { return text(name); });
  if (!error)
    *made = reinterpret_cast<nvrtcProgram>(new Program);
  return static_cast<nvrtcResult>(error);
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int count,
                                const char *const *options) {
  int error = beginCall("nvrtcCompileProgram", [&] {
    std::string all;
    for (int i = 0; i < count; ++i)
      all += text(i ? " " : "", options[i]);
    return all;
  });
  programOf(handle).isCompiled = error == 0;
  programOf(handle).log = error ? "error: this is a test" : "";
  return static_cast<nvrtcResult>(error);
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram handle, size_t *bytes) {
  if (int error = faultOf("nvrtcGetCUBINSize"))
    return static_cast<nvrtcResult>(error);
  *bytes = sizeof kImage;
  return programOf(handle).isCompiled ? NVRTC_SUCCESS
                                      : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram handle, char *image) {
  if (int error = faultOf("nvrtcGetCUBIN"))
    return static_cast<nvrtcResult>(error);
  std::memcpy(image, kImage, sizeof kImage);
  return programOf(handle).isCompiled ? NVRTC_SUCCESS
                                      : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *bytes) {
  *bytes = programOf(handle).log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram handle, char *log) {
  const std::string &text = programOf(handle).log;
  std::memcpy(log, text.c_str(), text.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *handle) {
  delete &programOf(*handle);
  *handle = nullptr;
  return NVRTC_SUCCESS;
}

} // extern "C"
