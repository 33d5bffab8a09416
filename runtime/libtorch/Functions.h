//===- Functions.h - Functions of the module for LibTorch -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contract between the module for LibTorch and OnDemand.cpp, which loads
// it.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_LIBTORCH_FUNCTIONS_H
#define CHIMERA_RUNTIME_LIBTORCH_FUNCTIONS_H

#include "runtime/control/tcp/PeerExchange.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/graph/NativeCode.h"
#include "runtime/model/tensors/Tensors.h"

namespace chimera::runtime {

inline constexpr const char *kTorchModule = "chimera_torch.so";

/// All functions of the module, which its headers describe.
struct TorchFunctions {
  // Tensors.h
  decltype(&runtime::setThreads) setThreads;
  decltype(&runtime::countTensorBytes) countTensorBytes;
  decltype(&runtime::liveTensorBytes) liveTensorBytes;
  // GraphStage.h
  decltype(&runtime::makeGraphStage) makeGraphStage;
  decltype(&runtime::makeWholeModel) makeWholeModel;
  decltype(&runtime::makePredictor) makePredictor;
  decltype(&runtime::withLossWeights) withLossWeights;
  // NativeCode.h
  decltype(&runtime::readNativeCode) readNativeCode;
  // PeerExchange.h
  decltype(&runtime::exchangeAtStore) exchangeAtStore;
  decltype(&runtime::reportFailureAtStore) reportFailureAtStore;
};

/// The name of the module's only function, which returns the table. The name
/// changes whenever the interface between a program and the module changes.
inline constexpr const char *kTorchFunctions = "chimeraTorchFunctions1";
using GetTorchFunctions = const TorchFunctions &();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_LIBTORCH_FUNCTIONS_H
