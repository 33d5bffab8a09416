//===- ModelTest.cpp - Sizes that a model determines ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/CheckStages.h"
#include "runtime/program/Layers.h"
#include "test/runtime/program/SampleDescription.h"
#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

// A model with width 8, context 4 and vocabulary 16. A number has 8 bytes, so a
// row has 64 bytes. The embedding of stage 0 has 20 rows (16 tokens and 4
// positions). The boundary between two stages has 4 rows.
constexpr SampleOptions kOfModel{
    .workers = 4, .microBatches = 2, .ofModel = true};
ProgramT sampleOfModel() { return samplePipeline(kOfModel); }

TEST(Model, MayHaveAnySizes) {
  for (uint32_t workers : {3, 4, 6})
    for (uint32_t parts : {1, 2})
      for (bool both : {false, true}) {
        ProgramT program = samplePipeline({.workers = workers,
                                           .microBatches = 4,
                                           .bidirectional = both,
                                           .doubledForwards = true,
                                           .backwardParts = parts,
                                           .ofModel = true});
        for (const Violation &violation : verifyProgram(program))
          ADD_FAILURE() << violation.message;
        EXPECT_EQ(checkStages(program), "");
      }
}

/// Changes the size of every buffer of this kind to `bytes`.
void resize(ProgramT &program, ValueKind kind, uint64_t bytes) {
  for (auto &worker : program.workers)
    for (Buffer &buffer : worker->buffers)
      if (buffer.kind() == kind)
        buffer.mutate_bytes(bytes);
}

/// Changes one size of the model.
void resizeModel(ProgramT &program, uint32_t SmallGpt2::*size, uint32_t value) {
  SmallGpt2 gpt2 = gpt2Of(kOfModel);
  gpt2.*size = value;
  setGpt2(program, gpt2);
}

const Refusal kModelCases[] = {
    {"NotAPackage", Rule::Structure, "expected one of 3 kinds",
     [](ProgramT &p) { p.model->layers[1]->kind = 3; }},
    {"NoSamples", Rule::Structure,
     "expected a micro-batch size of at least 1, got 0",
     [](ProgramT &p) { p.micro_batch_size = 0; }},
    {"OtherOptimizer", Rule::Structure,
     "expected optimizer 'adamw', 'muon', 'sgd' or 'sgd-momentum', got 'adam'",
     [](ProgramT &p) { p.optimizer->name = "adam"; }},
    {"LayersLeftOut", Rule::Structure,
     "stage 1: expected layers that begin at 1 and end by 4, got 1 from 2 on",
     [](ProgramT &p) { p.stages[1].mutate_first_layer(2); }},
    {"LayersTwice", Rule::Structure,
     "stage 1: expected layers that begin at 2 and end by 4, got 1 from 1 on",
     [](ProgramT &p) { p.stages[0].mutate_layers(2); }},
    {"NotTheFirstLayer", Rule::Structure,
     "stage 0: expected layers that begin at 0 and end by 4, got 1 from 1 on",
     [](ProgramT &p) { p.stages[0].mutate_first_layer(1); }},
    {"NoLayers", Rule::Structure,
     "stage 2: expected layers that begin at 2 and end by 4, got 0 from 2 on",
     [](ProgramT &p) { p.stages[2].mutate_layers(0); }},
    {"LayersBehindTheModels", Rule::Structure,
     "stage 3: expected layers that begin at 3 and end by 4, got 4294967295 "
     "from 3 on",
     [](ProgramT &p) { p.stages[3].mutate_layers(UINT32_MAX); }},
    {"LayersOfAnotherModel", Rule::Structure,
     "expected stages of the model's 5 layers, got the first 4",
     [](ProgramT &p) { resizeModel(p, &SmallGpt2::layers, 3); }},
    {"OtherWidth", Rule::Structure,
     "stage 0: expected 2560 bytes of weights for this model, got 1280",
     [](ProgramT &p) { resizeModel(p, &SmallGpt2::width, 16); }},
    {"OtherVocabulary", Rule::Structure,
     "stage 0: expected 1344 bytes of weights for this model, got 1280",
     [](ProgramT &p) { resizeModel(p, &SmallGpt2::vocabulary, 17); }},
    {"OtherDataType", Rule::Structure,
     "stage 0: expected 640 bytes of weights for this model, got 1280",
     [](ProgramT &p) {
       p.weight_type = p.activation_type = DataType::Float32;
       setGpt2(p, gpt2Of(kOfModel));
     }},
    {"Float64BesideBFloat16", Rule::Structure,
     "expected activations of the weights' type, or of bfloat16 beside weights "
     "of float32, got float64 beside bfloat16",
     [](ProgramT &p) { p.weight_type = DataType::BFloat16; }},
    {"OtherActivations", Rule::Structure,
     "expected activations of the weights' type, or of bfloat16 beside weights "
     "of float32, got bfloat16 beside float64",
     [](ProgramT &p) { p.activation_type = DataType::BFloat16; }},
    {"ACopyThatTheModelHasNot", Rule::Structure,
     "stage 0: expected 0 bytes of weights that are a copy for this model, got "
     "8",
     [](ProgramT &p) { p.stages[0].mutate_copy_bytes(8); }},
    {"OtherState", Rule::Structure,
     "stage 1: expected 13952 bytes of optimizer state for this model, got "
     "6976",
     [](ProgramT &p) {
       p.stages[1].mutate_optimizer_bytes(p.stages[1].weights_bytes());
     }},
    {"OtherMicroBatch", Rule::Structure,
     "stage 0: expected 512 bytes of boundary for this model, got 256",
     [](ProgramT &p) { p.micro_batch_size = 2; }},
    {"OtherTokens", Rule::Structure, "expected 32 bytes of tokens, got 4",
     [](ProgramT &p) { resize(p, ValueKind::Tokens, 4); }},
    {"OtherLabels", Rule::Structure, "expected 32 bytes of labels, got 8",
     [](ProgramT &p) { resize(p, ValueKind::Labels, 8); }},
    {"OtherLosses", Rule::Structure, "expected 8 bytes of loss, got 4",
     [](ProgramT &p) { resize(p, ValueKind::Loss, 4); }},
};

class VerifyModel : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyModel, IsRefused) { expectRefused(sampleOfModel(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyModel,
                         testing::ValuesIn(kModelCases), nameOfCase<Refusal>);

// The last stage sends no activation, so its boundary may have any size.
TEST(Model, SaysNothingOfTheLastBoundary) {
  ProgramT program = sampleOfModel();
  program.stages.back().mutate_boundary_bytes(1);
  EXPECT_TRUE(verifyProgram(program).empty());
}

// Without a model, tokens and labels may have any size.
TEST(Model, WithoutOneSizesAreFree) {
  ProgramT program = samplePipeline({.workers = 2, .tokenBytes = 8});
  EXPECT_TRUE(verifyProgram(program).empty());
}

} // namespace
} // namespace chimera::program
