//===- DescriptionInterface.cpp - Names for the parser --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/describe/DescriptionInterface.h"

#include "dialect/DescriptionInterface.h"
#include "passes/describe/DescriptionReader.h"

using namespace mlir;

namespace chimera {

namespace {

class Description : public DescriptionInterface {
public:
  explicit Description(Dialect *dialect) : DescriptionInterface(dialect) {
    for (const schedule::Scheme &scheme : schedule::schemes())
      schemes.push_back(scheme.name);
    for (const schedule::TimeUnit &unit : schedule::timeUnits())
      units.push_back(unit.name);
    models = {kGpt2Model, kExportedModel, kBareModel};
  }

  ArrayRef<StringRef> schedules() const override { return schemes; }
  ArrayRef<StringRef> timeUnits() const override { return units; }
  ArrayRef<StringRef> architectures() const override { return models; }

  LogicalResult verify(PipelineOp pipeline) const override {
    return LogicalResult(schemeOf(pipeline));
  }
  LogicalResult verify(ModelOp model) const override {
    return success(model.getBareLayers() ||
                   succeeded(modelOf(model, std::nullopt)));
  }

private:
  SmallVector<StringRef> schemes, units, models;
};

} // namespace

void registerDescriptionInterface(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, ChimeraDialect *dialect) {
    dialect->addInterface<Description>();
  });
}

} // namespace chimera
