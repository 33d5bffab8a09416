//===- ExportedStage.h - Layers of an exported model ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage that runs a contiguous range of a package's layers, without Python.
// The tensors that one stage sends to the next are packed one after another in
// one buffer (Packing.h). A part of a micro-batch has its tensors in the part's
// share of the buffer.
//
// The loss is the number that the package's last layer computes, as a float64.
// A part's share of the micro-batch's loss is the loss that the layer computes
// for the part. If losses are means, this loss is also divided by the number of
// parts.
//
// A stash owns the tensors that its layers save, and those inputs, labels and
// outputs of layers that the backward reads. The stage's own input is copied,
// since the caller may reuse its buffer. The size of a stash is the sum of the
// layers' stashBytes (runtime/program/Package.h).
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
/// outlive the stage. `values` gives the parameters before the first step. If
/// `values` is null, the package says how to draw each parameter. `native` is
/// compiled code that runs instead of the graphs, or null. Throws
/// std::invalid_argument if the program has no package, if checkPackage rejects
/// the package, if the stage's layers do not match it, if a graph cannot be
/// executed (Executable.h), or if `native` is for other graphs.
std::unique_ptr<Stage>
makeExportedStage(const program::ProgramT &program, uint32_t stage,
                  std::shared_ptr<const InitialValues> values,
                  const DevicePlacement &placement = {},
                  std::shared_ptr<const NativeCode> native = nullptr);

/// Makes one stage that has all layers of the model. It is both the first and
/// the last stage. The program must outlive it.
std::unique_ptr<Stage>
makeWholeExportedModel(const program::ProgramT &program,
                       std::shared_ptr<const InitialValues> values,
                       std::shared_ptr<const NativeCode> native = nullptr);

/// Makes a next-token predictor of the whole model. The program must outlive
/// the predictor. Throws like makeExportedStage. Also throws if the model was
/// exported without logits, or if it has other inputs than tokens,
/// attention_mask and position_ids. Requires that the logits of a token depend
/// only on that token and earlier ones.
std::unique_ptr<Predictor>
makeExportedPredictor(const program::ProgramT &program,
                      std::shared_ptr<const InitialValues> values);

/// A data source with the tokens and labels of `data`, and with the loss
/// weights (DataSource::lossWeight) that the package computes from the labels.
/// If the loss is a mean, returns `data`. The program must outlive the result.
///
/// If the loss has several terms, the last label field receives a scale for
/// each term: the number of micro-batches divided by the total weight of the
/// term's labels in all these micro-batches. They are the micro-batches of
/// `windowSteps` consecutive steps. Each micro-batch then weighs 1, or 0 if all
/// terms have total weight 0.
std::unique_ptr<DataSource> withLossWeights(const program::ProgramT &program,
                                            std::unique_ptr<DataSource> data,
                                            uint64_t windowSteps = 1);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_EXPORTEDSTAGE_H
