//===- ExportedStage.h - Layers of an exported model ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage that runs a contiguous range of a package's layers, without Python.
// The tensors of a boundary are packed one after another in its buffer. For a
// part of a micro-batch, they are in the part's share of the buffer.
//
// The loss is the number that the package's last layer computes, as a float64.
// A part's share of it is the part's own loss. If losses are means, that is
// divided by the number of parts.
//
// A stash owns the tensors that its layers save, and copies of the other
// tensors that the backward reads, including the stage's input. Its size is the
// sum of the layers' stashBytes (runtime/program/Package.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXPORTED_EXPORTEDSTAGE_H
#define CHIMERA_RUNTIME_STAGE_EXPORTED_EXPORTEDSTAGE_H

#include "runtime/stage/Predictor.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/exported/NativeCode.h"
#include "runtime/stage/torch/DevicePlacement.h"
#include "runtime/stage/torch/InitialValues.h"

#include <memory>

namespace chimera::runtime {

/// Makes stage `stage` of a program whose model is a package. The program must
/// outlive the stage. `values` gives the parameters before the first step; if
/// it is null, the package says how to draw each one. `native` is compiled code
/// that runs instead of the graphs; it may be null. Throws
/// std::invalid_argument if the program has no package, if checkPackage rejects
/// the package, if the stage's layers do not match it, if a graph cannot be
/// executed (Executable.h), or if the native code is for other graphs.
std::unique_ptr<Stage>
makeExportedStage(const program::ProgramT &program, uint32_t stage,
                  std::shared_ptr<const InitialValues> values,
                  const DevicePlacement &placement = {},
                  std::shared_ptr<const NativeCode> native = nullptr);

/// Makes one stage with all layers, which is both the first and the last stage.
/// The program must outlive it.
std::unique_ptr<Stage>
makeWholeExportedModel(const program::ProgramT &program,
                       std::shared_ptr<const InitialValues> values,
                       std::shared_ptr<const NativeCode> native = nullptr);

/// Makes a next-token predictor of the whole model. The program must outlive
/// it. Throws like makeExportedStage. Also throws if the model was exported
/// without logits, or if its inputs are not only tokens. Requires that the
/// logits of a token depend only on that token and earlier ones.
std::unique_ptr<Predictor>
makeExportedPredictor(const program::ProgramT &program,
                      std::shared_ptr<const InitialValues> values);

/// Adds the loss weights that the package computes from the labels to `data`.
/// The program must outlive the result. If the loss has several terms, each
/// micro-batch weighs 1, or 0 if all terms are empty. The last label field then
/// receives a scale for each term: the number of micro-batches divided by the
/// term's total label weight in all of them. "All" means the micro-batches of
/// `windowSteps` consecutive steps.
std::unique_ptr<DataSource> withLossWeights(const program::ProgramT &program,
                                            std::unique_ptr<DataSource> data,
                                            uint64_t windowSteps = 1);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_EXPORTEDSTAGE_H
