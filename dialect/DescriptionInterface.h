//===- DescriptionInterface.h - What a description may name -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_DESCRIPTIONINTERFACE_H
#define CHIMERA_DIALECT_DESCRIPTIONINTERFACE_H

#include "dialect/Chimera.h"

#include "mlir/IR/DialectInterface.h"

namespace chimera {

/// What the architecture of a model is called that has a package.
/// Architectures of models that are described by other things than sizes.
inline constexpr llvm::StringLiteral kExportedModel = "exported";
inline constexpr llvm::StringLiteral kBareModel = "bare";

/// What the dialect itself does not know: which schedules and models there are.
/// A tool that attaches one (passes/DescriptionInterface.h) has descriptions
/// verified against it where they are parsed, as an editor wants it; otherwise
/// the phase that looks a name up refuses it.
class DescriptionInterface
    : public mlir::DialectInterface::Base<DescriptionInterface> {
public:
  explicit DescriptionInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// The names of schedules, of units of time, and of the architectures of
  /// models.
  virtual llvm::ArrayRef<llvm::StringRef> schedules() const = 0;
  virtual llvm::ArrayRef<llvm::StringRef> timeUnits() const = 0;
  virtual llvm::ArrayRef<llvm::StringRef> architectures() const = 0;

  /// Fail, with a diagnostic that says what is possible, where the schedule of
  /// the pipeline or the model cannot be made.
  virtual mlir::LogicalResult verify(PipelineOp pipeline) const = 0;
  virtual mlir::LogicalResult verify(ModelOp model) const = 0;
};

/// Null where no tool has attached one.
const DescriptionInterface *descriptionInterfaceOf(mlir::MLIRContext *context);

} // namespace chimera

#endif // CHIMERA_DIALECT_DESCRIPTIONINTERFACE_H
