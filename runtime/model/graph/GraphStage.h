//===- GraphStage.h - Layers as graphs --------------------------*- C++ -*-===//
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
// parts. If the last layer's backward computes the loss, a forward of training
// writes 0, and the backward adds the loss.
//
// A stash owns the tensors that its layers save, and those inputs, labels and
// outputs of layers that the backward reads. The stage's own input is copied,
// since the caller may reuse its buffer. The size of a stash is the sum of the
// layers' stashBytes (runtime/program/Package.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_GRAPHSTAGE_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_GRAPHSTAGE_H

#include "runtime/model/Predictor.h"
#include "runtime/model/Stage.h"
#include "runtime/model/graph/NativeCode.h"
#include "runtime/model/tensors/DevicePlacement.h"
#include "runtime/model/weights/InitialValues.h"

#include <memory>

namespace chimera::runtime {

/// Makes stage `stage` of the program. The program must outlive the stage.
/// `values` gives the parameters before the first step. If `values` is null,
/// the package says how to draw each parameter. `native` is compiled code that
/// runs instead of the graphs, or null. Throws std::invalid_argument if the
/// program has no model, if checkPackage rejects the model, if the stage's
/// layers do not match it, if a graph cannot be executed (Executable.h), or if
/// `native` is for other graphs. `native` must be null on a GPU.
std::unique_ptr<Stage>
makeGraphStage(const program::ProgramT &program, uint32_t stage,
               std::shared_ptr<const InitialValues> values = nullptr,
               const DevicePlacement &placement = {},
               std::shared_ptr<const NativeCode> native = nullptr);

/// Makes one stage that has all layers of the model. It is both the first and
/// the last stage. The program must outlive it.
std::unique_ptr<Stage>
makeWholeModel(const program::ProgramT &program,
               std::shared_ptr<const InitialValues> values,
               std::shared_ptr<const NativeCode> native = nullptr);

/// Makes a next-token predictor of the whole model. The program must outlive
/// the predictor. Throws like makeGraphStage. Also throws if the model was
/// exported without logits, or if it has other inputs than tokens,
/// attention_mask and position_ids. Requires that the logits of a token depend
/// only on that token and earlier ones.
std::unique_ptr<Predictor>
makePredictor(const program::ProgramT &program,
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

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_GRAPHSTAGE_H
