//===- CostsFrom.cpp - Profiles for machines ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_COSTSFROMPASS
#include "passes/Passes.h.inc"

namespace {

struct CostsFrom : impl::CostsFromPassBase<CostsFrom> {
  using CostsFromPassBase::CostsFromPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto machines = module.getOps<MachineOp>();
    if (profiles.empty() || machines.empty()) {
      module.emitError("chimera-costs-from: expected ")
          << (profiles.empty() ? "profiles=FILE,…"
                               : "a chimera.machine, got none: declare one, "
                                 "such as chimera.machine @here devices(4) "
                                 "memory(16 GiB) speed(\"50 TFLOP/s\"), and "
                                 "name it in the pipeline, after its model and "
                                 "training: of @MODEL with @TRAINING on @here");
      return signalPassFailure();
    }
    SmallVector<Attribute> paths;
    for (const std::string &name : profiles) {
      SmallString<128> path(name);
      if (std::error_code code = llvm::sys::fs::make_absolute(path);
          code || !llvm::sys::fs::exists(path)) {
        module.emitError("chimera-costs-from: expected a profile in ")
            << name << ", found no such file";
        return signalPassFailure();
      }
      paths.push_back(Builder(module.getContext()).getStringAttr(path));
    }
    for (MachineOp machine : machines)
      machine.setProfileAttr(Builder(module.getContext()).getArrayAttr(paths));
  }
};

} // namespace
} // namespace chimera
