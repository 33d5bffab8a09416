//===- DescriptionInterface.h - Names in descriptions -----------*- C++ -*-===//
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

/// The names of the architectures. The built-in GPT-2 has clauses for its
/// sizes, an exported model has a package, a bare model has a list of layers.
inline constexpr llvm::StringLiteral kGpt2Model = "gpt2";
inline constexpr llvm::StringLiteral kExportedModel = "exported";
inline constexpr llvm::StringLiteral kBareModel = "bare";

/// The schedules, units of time and models that exist. The dialect itself does
/// not know them. A tool may attach an interface
/// (passes/describe/DescriptionInterface.h). Then descriptions are verified
/// against the interface when they are parsed, so an editor can show the
/// errors. Without an interface, the phase that looks a name up reports the
/// error.
class DescriptionInterface
    : public mlir::DialectInterface::Base<DescriptionInterface> {
public:
  explicit DescriptionInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// The names of all schedules, units of time and model architectures.
  virtual llvm::ArrayRef<llvm::StringRef> schedules() const = 0;
  virtual llvm::ArrayRef<llvm::StringRef> timeUnits() const = 0;
  virtual llvm::ArrayRef<llvm::StringRef> architectures() const = 0;

  /// Fails if the schedule of `pipeline` is unknown or is not possible with the
  /// sizes of `pipeline`. The diagnostic lists what is possible.
  virtual mlir::LogicalResult verify(PipelineOp pipeline) const = 0;
  /// Fails if `model` is unknown or its sizes are not valid. The diagnostic
  /// lists what is possible.
  virtual mlir::LogicalResult verify(ModelOp model) const = 0;
};

/// The interface that a tool has attached to the dialect, or null.
const DescriptionInterface *descriptionInterfaceOf(mlir::MLIRContext *context);

} // namespace chimera

#endif // CHIMERA_DIALECT_DESCRIPTIONINTERFACE_H
