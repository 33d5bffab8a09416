//===- Module.cpp - Entry point of the module for LibTorch ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/libtorch/Functions.h"

using namespace chimera::runtime;

extern "C" __attribute__((visibility("default"))) const TorchFunctions &
chimeraTorchFunctions1() {
  static const TorchFunctions functions = {.setThreads = setThreads,
                                           .countTensorBytes = countTensorBytes,
                                           .liveTensorBytes = liveTensorBytes,
                                           .makeGraphStage = makeGraphStage,
                                           .makeWholeModel = makeWholeModel,
                                           .makePredictor = makePredictor,
                                           .withLossWeights = withLossWeights,
                                           .readNativeCode = readNativeCode,
                                           .exchangeAtStore = exchangeAtStore,
                                           .reportFailureAtStore =
                                               reportFailureAtStore};
  return functions;
}
