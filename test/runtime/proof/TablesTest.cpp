//===- TablesTest.cpp - Refused tables of a program -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

const Refusal kTableCases[] = {
    {"NoOptimizer", Rule::Structure, "expected an optimizer, got none",
     [](ProgramT &p) { p.optimizer = nullptr; }},
    {"NullPipeline", Rule::Structure, "got an empty entry",
     [](ProgramT &p) { p.pipelines[1] = nullptr; }},
    {"NullCommunicator", Rule::Structure, "got an empty entry",
     [](ProgramT &p) { p.communicators[1] = nullptr; }},
    {"NullWorker", Rule::Structure, "got an empty entry",
     [](ProgramT &p) { p.workers[1] = nullptr; }},
    {"NoWorkers", Rule::Structure, "expected at least one worker",
     [](ProgramT &p) { p.workers.clear(); }},
    {"NoStages", Rule::Structure, "expected at least one stage",
     [](ProgramT &p) { p.stages.clear(); }},
    {"NoPipelines", Rule::Structure, "expected at least one pipeline",
     [](ProgramT &p) { p.pipelines.clear(); }},
    {"NoMicroBatches", Rule::Structure, "expected at least one micro-batch",
     [](ProgramT &p) { p.micro_batches = 0; }},
    {"NoCopies", Rule::Structure, "expected at least one data-parallel copy",
     [](ProgramT &p) { p.data_parallel = 0; }},
    {"UnknownDataType", Rule::Structure, "unknown data type 7",
     [](ProgramT &p) { p.weight_type = DataType(7); }},
    {"UnknownActivationType", Rule::Structure, "unknown data type 8",
     [](ProgramT &p) { p.activation_type = DataType(8); }},
    {"UnknownMessageModel", Rule::Structure, "unknown message model 7",
     [](ProgramT &p) { p.message_model = MessageModel(7); }},
    {"AlignmentOfNoPower", Rule::Structure,
     "expected a buffer alignment of 8, 16, ... or 4096 bytes, got 48",
     [](ProgramT &p) { p.buffer_alignment = 48; }},
    {"AlignmentOfNothing", Rule::Structure,
     "expected a buffer alignment of 8, 16, ... or 4096 bytes, got 0",
     [](ProgramT &p) { p.buffer_alignment = 0; }},
    {"AlignmentOfTwoPages", Rule::Structure,
     "expected a buffer alignment of 8, 16, ... or 4096 bytes, got 8192",
     [](ProgramT &p) { p.buffer_alignment = 8192; }},
    {"LocationOfNoFile", Rule::Structure,
     "location 2: expected a file below 1, got 5",
     [](ProgramT &p) { p.locations[2].mutate_file(5); }},
    {"MicroBatchInNoPipeline", Rule::Structure,
     "expected each of 5 micro-batches in one pipeline, got 4",
     [](ProgramT &p) { p.micro_batches = 5; }},
    {"MicroBatchInTwoPipelines", Rule::Structure,
     "pipeline 1: micro-batch 1 is in pipeline 0 too",
     [](ProgramT &p) {
       p.pipelines[1]->micro_batches = {1, 3};
     }},
    {"MicroBatchOutOfRange", Rule::Structure,
     "expected micro-batches below 4, got 9",
     [](ProgramT &p) { p.pipelines[1]->micro_batches[1] = 9; }},
    {"MicroBatchesNotAscending", Rule::Structure,
     "expected ascending micro-batches, got 2 after 3",
     [](ProgramT &p) {
       p.pipelines[1]->micro_batches = {3, 2};
     }},
    {"UnknownDirection", Rule::Structure, "unknown direction 3",
     [](ProgramT &p) { p.pipelines[0]->direction = Direction(3); }},
    {"PipelineWithTooFewWorkers", Rule::Structure,
     "expected a worker for each of 4 stages, got 3",
     [](ProgramT &p) { p.pipelines[0]->workers.pop_back(); }},
    {"PipelineOnNoWorker", Rule::Structure, "expected workers below 4, got 4",
     [](ProgramT &p) { p.pipelines[0]->workers[2] = 4; }},
    {"StateOfNoStage", Rule::Structure, "no such pipeline or stage",
     [](ProgramT &p) { worker(p, 0).states[0].mutate_stage(4); }},
    {"StateOnTheWrongWorker", Rule::Structure, "this stage is on worker 1",
     [](ProgramT &p) { worker(p, 0).states[0].mutate_stage(1); }},
    {"StateGivenTwice", Rule::Structure, "given twice",
     [](ProgramT &p) {
       WorkerT &w = worker(p, 0);
       w.states.push_back(w.states[0]);
     }},
    {"StateMissing", Rule::Structure,
     "worker 0: expected a state of pipeline 1 stage 3, got none",
     [](ProgramT &p) { worker(p, 0).states.pop_back(); }},
    {"StateInNoBuffer", Rule::Structure, "expected a buffer below",
     [](ProgramT &p) { worker(p, 0).states[0].mutate_weights(UINT32_MAX); }},
    {"StateInABufferOfOtherKind", Rule::Structure,
     "expected 128 bytes of weights, got 256 of optimizer state",
     [](ProgramT &p) {
       State &state = worker(p, 0).states[0];
       state.mutate_weights(state.optimizer_state());
     }},
    {"StateOfOtherSize", Rule::Structure,
     "expected 128 bytes of weights, got 120 of weights",
     [](ProgramT &p) {
       shrink(worker(p, 0).buffers[worker(p, 0).states[0].weights()]);
     }},
    {"StatesInOneBuffer", Rule::Structure, "is another state's too",
     [](ProgramT &p) {
       WorkerT &w = worker(p, 0);
       w.states[1].mutate_weights(w.states[0].weights());
     }},
    {"BodyOutsideTheStream", Rule::Structure, "expected a body inside its",
     [](ProgramT &p) { ++worker(p, 0).body_end; }},
    {"BodyEndsBeforeItBegins", Rule::Structure, "expected a body inside its",
     [](ProgramT &p) {
       worker(p, 0).body_begin = 5;
       worker(p, 0).body_end = 4;
     }},
    {"PrologueDespiteAFlush", Rule::Structure,
     "worker 0: expected all instructions in the body of a program whose steps "
     "end with a flush, got 5 before it and 0 after it",
     [](ProgramT &p) { worker(p, 0).body_begin = 5; }},
    {"EpilogueDespiteAFlush", Rule::Structure, "got 0 before it and 1 after it",
     [](ProgramT &p) { --worker(p, 0).body_end; }},
    {"UnknownUpdates", Rule::Structure, "unknown updates 3",
     [](ProgramT &p) { p.updates = Updates(3); }},
    {"PeakAtNoInstruction", Rule::Structure, "expected its peak at one of its",
     [](ProgramT &p) { worker(p, 0).peak_instruction = 100000; }},
};

class VerifyTables : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyTables, IsRefused) { expectRefused(sampleBothWays(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyTables,
                         testing::ValuesIn(kTableCases), nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
