//===- ExportedStage.h - Layers of a PyTorch model --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a contiguous range of a package's layers, without Python. A boundary's
// tensors lie one behind another in its buffer, of a part of a micro-batch in
// the part's share of it.
//
// The loss is the number that the package's last layer makes, as a float64. A
// part's share of it is its own loss, divided by the number of parts where
// losses are means.
//
// A stash owns what its layers save and a copy of what else the backward takes,
// of the stage's input too: its bytes are the sum of the layers' stashBytes
// (runtime/program/Package.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXPORTED_EXPORTEDSTAGE_H
#define CHIMERA_RUNTIME_STAGE_EXPORTED_EXPORTEDSTAGE_H

#include "runtime/stage/Predictor.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/exported/NativeCode.h"
#include "runtime/stage/torch/InitialValues.h"
#include "runtime/stage/torch/Place.h"

#include <memory>

namespace chimera::runtime {

/// Stage `stage` of a program, which must outlive it, whose model is a package.
/// `values` are those of its parameters before the first step; null where the
/// package says of each how to draw it. `native`: compiled code to run in place
/// of graphs, null for none. Throws std::invalid_argument where the program has
/// no package, one that checkPackage refuses, a stage that is not of its
/// layers, a graph that cannot be run (Executable.h), or code for other graphs.
std::unique_ptr<Stage>
makeExportedStage(const program::ProgramT &program, uint32_t stage,
                  std::shared_ptr<const InitialValues> values,
                  const Place &place = {},
                  std::shared_ptr<const NativeCode> native = nullptr);

/// The whole model as one stage, first and last at once; the program must
/// outlive it.
std::unique_ptr<Stage>
makeWholeExportedModel(const program::ProgramT &program,
                       std::shared_ptr<const InitialValues> values,
                       std::shared_ptr<const NativeCode> native = nullptr);

/// The whole model as it says what comes next; the program must outlive it.
/// Throws likewise, and where the model was exported without logits, or takes
/// other than tokens. Logits are those of tokens alone that come before: the
/// model must look at no later ones.
std::unique_ptr<Predictor>
makeExportedPredictor(const program::ProgramT &program,
                      std::shared_ptr<const InitialValues> values);

/// `data` with the weights that the package of the program, which must outlive
/// it, gives its labels. Where the loss has several terms, micro-batches weigh
/// alike, nothing if all terms are empty, and the labels get their last field:
/// the number of micro-batches by what the term's labels weigh in all of them.
/// All: those of `together` steps.
std::unique_ptr<DataSource> withWeights(const program::ProgramT &program,
                                        std::unique_ptr<DataSource> data,
                                        uint64_t together = 1);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_EXPORTEDSTAGE_H
