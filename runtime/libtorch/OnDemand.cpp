//===- OnDemand.cpp - Loads LibTorch at the first call --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the functions of the module for LibTorch. Each calls the module's
// function of the same name. The first call of any of them loads the module.
//
//===----------------------------------------------------------------------===//

#include "runtime/libtorch/Functions.h"
#include "runtime/system/LoadModule.h"

using namespace chimera;
using namespace chimera::runtime;

static const TorchFunctions &loaded() {
  static const TorchFunctions &functions = []() -> const TorchFunctions & {
    auto *get = reinterpret_cast<GetTorchFunctions *>(
        loadModule({kTorchModule, kTorchFunctions},
                   {.missing = "this chimera is not complete",
                    .needs = "the LibTorch that chimera was built with",
                    .install = "Install torch " CHIMERA_TORCH_VERSION
                               " with pip or tools/setup.sh. A build of "
                               "chimera-run makes the module"}));
    // LibTorch would use all cores. And it must not start threads before the
    // program blocks the signals that they would get.
    get().setThreads(1);
    return get();
  }();
  return functions;
}

// If the program exported these functions, the module would call them instead
// of its own, and each would call itself.
#pragma GCC visibility push(hidden)
namespace chimera::runtime {

void setThreads(int threads) { loaded().setThreads(threads); }

void countTensorBytes() { loaded().countTensorBytes(); }

int64_t liveTensorBytes() { return loaded().liveTensorBytes(); }

std::unique_ptr<Stage>
makeGraphStage(const program::ProgramT &program, uint32_t stage,
               std::shared_ptr<const InitialValues> values,
               const DevicePlacement &placement,
               std::shared_ptr<const NativeCode> native) {
  return loaded().makeGraphStage(program, stage, std::move(values), placement,
                                 std::move(native));
}

std::unique_ptr<Stage>
makeWholeModel(const program::ProgramT &program,
               std::shared_ptr<const InitialValues> values,
               std::shared_ptr<const NativeCode> native) {
  return loaded().makeWholeModel(program, std::move(values), std::move(native));
}

std::unique_ptr<Predictor>
makePredictor(const program::ProgramT &program,
              std::shared_ptr<const InitialValues> values) {
  return loaded().makePredictor(program, std::move(values));
}

std::unique_ptr<DataSource> withLossWeights(const program::ProgramT &program,
                                            std::unique_ptr<DataSource> data,
                                            uint64_t windowSteps) {
  return loaded().withLossWeights(program, std::move(data), windowSteps);
}

std::shared_ptr<const NativeCode>
readNativeCode(const program::ProgramT &program, const std::string &folder) {
  return loaded().readNativeCode(program, folder);
}

std::vector<std::string> exchangeAtStore(const StoreAddress &store,
                                         uint32_t rank, uint32_t ranks,
                                         const std::string &own,
                                         std::chrono::milliseconds timeout,
                                         const LongWaitHandler &onLongWait) {
  return loaded().exchangeAtStore(store, rank, ranks, own, timeout, onLongWait);
}

void reportFailureAtStore(const StoreAddress &store, uint32_t rank,
                          const std::string &reason,
                          const LongWaitHandler &onLongWait) {
  loaded().reportFailureAtStore(store, rank, reason, onLongWait);
}

} // namespace chimera::runtime
#pragma GCC visibility pop
