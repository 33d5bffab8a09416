//===- VerifyInstructions.cpp - Each instruction by itself ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Signature.h"
#include "runtime/program/VerifyInternal.h"

#include <algorithm>
#include <cstdlib>

namespace chimera::program::verify {

namespace {

template <typename Kinds> std::string kindList(const Kinds &kinds) {
  std::string list = "(";
  for (ValueKind kind : kinds) {
    if (list.size() > 1)
      list += ", ";
    list += nameOf(kind);
  }
  return list + ")";
}

class InstructionVerifier {
public:
  InstructionVerifier(const ProgramT &program, const Facts &facts,
                      Report &report)
      : program(program), facts(facts), report(report),
        stages(static_cast<uint32_t>(program.stages.size())) {
    for (size_t opcode = 0; opcode <= size_t(Opcode::MAX); ++opcode)
      for (int ends = 0; ends < 4; ++ends)
        signatures[opcode][ends] =
            signatureOf(Opcode(opcode), ends & 1, ends & 2);
    // Runs of micro-batches of one pipeline make a range check constant time.
    uint32_t count = program.micro_batches;
    pipelineOf.resize(count);
    runEnd.resize(count);
    for (uint32_t p = 0; p < program.pipelines.size(); ++p)
      for (uint32_t m : program.pipelines[p]->micro_batches)
        pipelineOf[m] = p;
    for (uint32_t m = count; m-- > 0;)
      runEnd[m] = m + 1 < count && pipelineOf[m + 1] == pipelineOf[m]
                      ? runEnd[m + 1]
                      : m + 1;
  }

  void run() {
    if (!prepareVersions())
      return;
    for (w = 0; w < program.workers.size() && !report.full(); ++w) {
      worker = program.workers[w].get();
      section = 0;
      for (Section range : sectionsOf(*worker)) {
        ++section;
        end = range.end;
        uint32_t groupEnd = range.begin;
        for (i = range.begin; i < end && !report.full(); ++i)
          verifyOne(worker->instructions[i], groupEnd);
      }
    }
  }

private:
  void fail(const std::string &message) {
    report.add(Rule::Structure, w, i, message);
  }

  ValueKind kindOf(uint32_t buffer) const {
    return worker->buffers[buffer].kind();
  }

  void verifyOne(const Instruction &instruction, uint32_t &groupEnd) {
    Opcode opcode = instruction.opcode();
    if (opcode > Opcode::MAX || instruction.kind() > ValueKind::MAX)
      return fail("unknown opcode or kind");
    if (!program.locations.empty() && instruction.location() != kNone &&
        instruction.location() >= program.locations.size())
      return fail("expected a location below " +
                  text(program.locations.size()) + ", got " +
                  text(instruction.location()));
    bool isPost = opcode == Opcode::PostSend || opcode == Opcode::PostRecv;
    if (i < groupEnd && !isPost)
      return fail("expected a post, as a group before it announces");
    if (!verifyOperandRange(instruction))
      return;
    switch (opcode) {
    case Opcode::Group:
      if (instruction.target() == 0 || instruction.target() >= end - i)
        return fail("expected that many posts after it in its section, got " +
                    text(end - i - 1) + " instructions");
      groupEnd = i + 1 + instruction.target();
      [[fallthrough]];
    case Opcode::Wait:
      if (instruction.operands() + instruction.results() != 0)
        fail("expected no operands and results, got " +
             text(instruction.operands()) + " and " +
             text(instruction.results()));
      return;
    case Opcode::PostSend:
    case Opcode::PostRecv:
      return verifyPost(instruction);
    case Opcode::AllReduceStart:
      return verifyStart(instruction);
    case Opcode::Load:
      return verifyLoad(instruction);
    default:
      return verifyCompute(instruction);
    }
  }

  bool verifyOperandRange(const Instruction &instruction) {
    uint64_t first = instruction.first_operand();
    uint64_t last = first + instruction.operands() + instruction.results();
    if (last == first)
      return true;
    if (last > worker->operands.size()) {
      fail("expected operands inside the pool of " +
           text(worker->operands.size()) + ", got [" + text(first) + ", " +
           text(last) + ")");
      return false;
    }
    for (uint64_t o = first; o < last; ++o)
      if (worker->operands[o] >= worker->buffers.size()) {
        fail("expected buffers below " + text(worker->buffers.size()) +
             ", got " + text(worker->operands[o]));
        return false;
      }
    return true;
  }

  bool verifyReplica(const Instruction &instruction) {
    if (instruction.pipeline() >= program.pipelines.size()) {
      fail("expected a pipeline below " + text(program.pipelines.size()) +
           ", got " + text(instruction.pipeline()));
      return false;
    }
    if (instruction.stage() >= stages) {
      fail("expected a stage below " + text(stages) + ", got " +
           text(instruction.stage()));
      return false;
    }
    return true;
  }

  bool verifyPlacement(const Instruction &instruction) {
    if (!verifyReplica(instruction))
      return false;
    uint32_t holder =
        program.pipelines[instruction.pipeline()]->workers[instruction.stage()];
    if (holder == w)
      return true;
    fail("this stage is on worker " + text(holder));
    return false;
  }

  bool verifyMicroBatches(const Instruction &instruction) {
    uint64_t first = instruction.micro_batch();
    uint64_t last = first + instruction.micro_batches();
    if (last == first || last > program.micro_batches) {
      fail("expected micro-batches inside [0, " + text(program.micro_batches) +
           "), got [" + text(first) + ", " + text(last) + ")");
      return false;
    }
    if (pipelineOf[first] != instruction.pipeline() || runEnd[first] < last) {
      fail("expected micro-batches of pipeline " +
           text(instruction.pipeline()) + ", got one of pipeline " +
           text(pipelineOf[first] != instruction.pipeline()
                    ? pipelineOf[first]
                    : pipelineOf[runEnd[first]]));
      return false;
    }
    if (instruction.part() >= instruction.parts()) {
      fail("expected a part below the number of parts, got part " +
           text(instruction.part()) + " of " + text(instruction.parts()));
      return false;
    }
    return true;
  }

  /// Whether there are `operands` and `results`, as posts and loads have.
  bool verifyCounts(const Instruction &instruction, uint32_t operands,
                    uint32_t results) {
    if (instruction.operands() == operands && instruction.results() == results)
      return true;
    fail("expected " + text(operands) + " operands and " + text(results) +
         " results, got " + text(instruction.operands()) + " and " +
         text(instruction.results()));
    return false;
  }

  bool verifyKind(const Instruction &instruction, uint32_t buffer) {
    if (kindOf(buffer) == instruction.kind())
      return true;
    fail(std::string("expected a buffer of ") + nameOf(instruction.kind()) +
         ", got one of " + nameOf(kindOf(buffer)));
    return false;
  }

  void verifyLoad(const Instruction &instruction) {
    if (instruction.kind() != ValueKind::Tokens &&
        instruction.kind() != ValueKind::Labels)
      return fail(std::string("expected tokens or labels, got ") +
                  nameOf(instruction.kind()));
    if (verifyPlacement(instruction) && verifyMicroBatches(instruction) &&
        verifyCounts(instruction, 0, 1))
      verifyKind(instruction, resultsOf(*worker, instruction)[0]);
  }

  void verifyPost(const Instruction &instruction) {
    bool sends = instruction.opcode() == Opcode::PostSend;
    if (instruction.target() >= program.workers.size())
      return fail("expected a peer below " + text(program.workers.size()) +
                  ", got " + text(instruction.target()));
    if (instruction.target() == w)
      return fail("expected another worker as peer, got itself");
    if (instruction.kind() == ValueKind::Stash)
      return fail("a stash cannot be sent");
    bool ofMicroBatches = instruction.kind() != ValueKind::Weights &&
                          instruction.kind() != ValueKind::WeightGradient &&
                          instruction.kind() != ValueKind::OptimizerState;
    if (verifyReplica(instruction) &&
        (!ofMicroBatches || verifyMicroBatches(instruction)) &&
        verifyCounts(instruction, sends, !sends))
      verifyKind(instruction, worker->operands[instruction.first_operand()]);
  }

  void verifyStart(const Instruction &instruction) {
    uint32_t id = instruction.target();
    if (id >= program.communicators.size())
      return fail("expected a communicator below " +
                  text(program.communicators.size()) + ", got " + text(id));
    const CommunicatorT &communicator = *program.communicators[id];
    if (instruction.kind() != communicator.kind)
      return fail(std::string("expected ") + nameOf(communicator.kind) +
                  ", as the communicator has, got " +
                  nameOf(instruction.kind()));
    if (communicator.kind == ValueKind::WeightGradient &&
        instruction.stage() != communicator.stage)
      return fail("expected the communicator's stage " +
                  text(communicator.stage) + ", got " +
                  text(instruction.stage()));
    const std::vector<Member> &members = facts.members[id];
    auto member = std::ranges::lower_bound(members, w, {}, &Member::worker);
    if (member == members.end() || member->worker != w)
      return fail("this worker contributes nothing to communicator " +
                  text(id));
    if (!verifyCounts(instruction, member->contributions, 1))
      return;
    uint32_t sum = resultsOf(*worker, instruction)[0];
    if (!verifyKind(instruction, sum))
      return;
    for (uint32_t buffer : operandsOf(*worker, instruction)) {
      if (!verifyKind(instruction, buffer))
        return;
      if (worker->buffers[buffer].bytes() != worker->buffers[sum].bytes())
        return fail("expected contributions of the sum's " +
                    text(worker->buffers[sum].bytes()) + " bytes, got " +
                    text(worker->buffers[buffer].bytes()));
    }
  }

  void verifyCompute(const Instruction &instruction) {
    Opcode opcode = instruction.opcode();
    if (!verifyPlacement(instruction))
      return;
    bool ofMicroBatches =
        opcode != Opcode::ZeroGradient && opcode != Opcode::OptimizerStep;
    if (ofMicroBatches && !verifyMicroBatches(instruction))
      return;
    int ends = (instruction.stage() == 0 ? 1 : 0) |
               (instruction.stage() + 1u == stages ? 2 : 0);
    const Signature &signature = signatures[size_t(opcode)][ends];
    if (!verifyKinds(instruction, signature) ||
        !verifyInPlace(instruction, signature))
      return;
    verifyVersion(instruction);
  }

  bool verifyKinds(const Instruction &instruction, const Signature &signature) {
    size_t count = signature.operands + signature.results;
    const uint32_t *buffers =
        worker->operands.data() + instruction.first_operand();
    bool agrees = instruction.operands() == signature.operands &&
                  instruction.results() == signature.results;
    for (size_t k = 0; agrees && k < count; ++k)
      agrees = kindOf(buffers[k]) == signature.kinds[k];
    if (!agrees) {
      auto found = [&](std::span<const uint32_t> list) {
        std::vector<ValueKind> kinds;
        for (uint32_t buffer : list.first(std::min<size_t>(list.size(), 8)))
          kinds.push_back(kindOf(buffer));
        return kindList(kinds);
      };
      std::span<const ValueKind> kinds(signature.kinds);
      fail("expected " + kindList(kinds.first(signature.operands)) + " -> " +
           kindList(kinds.subspan(signature.operands, signature.results)) +
           ", got " + found(operandsOf(*worker, instruction)) + " -> " +
           found(resultsOf(*worker, instruction)));
      return false;
    }
    uint64_t left = worker->buffers[buffers[signature.equalBytes[0]]].bytes();
    uint64_t right = worker->buffers[buffers[signature.equalBytes[1]]].bytes();
    if (left != right) {
      fail(std::string("expected equal bytes of ") +
           nameOf(signature.kinds[signature.equalBytes[0]]) + " and " +
           nameOf(signature.kinds[signature.equalBytes[1]]) + ", got " +
           text(left) + " and " + text(right));
      return false;
    }
    return true;
  }

  bool verifyInPlace(const Instruction &instruction,
                     const Signature &signature) {
    std::span<const uint32_t> operands = operandsOf(*worker, instruction);
    std::span<const uint32_t> results = resultsOf(*worker, instruction);
    for (size_t r = 0; r < results.size(); ++r) {
      if (signature.inPlace[r] != kNotInPlace) {
        uint32_t expected = operands[signature.inPlace[r]];
        if (results[r] == expected)
          continue;
        fail("expected the " +
             std::string(nameOf(signature.kinds[signature.operands + r])) +
             " in place in buffer " + text(expected) + ", got buffer " +
             text(results[r]));
        return false;
      }
      // A stash is a handle, which may be replaced where it lies.
      bool reads = kindOf(results[r]) != ValueKind::Stash &&
                   std::ranges::find(operands, results[r]) != operands.end();
      bool twice = r > 0 && results[0] == results[r];
      if (reads || twice) {
        fail("expected a result apart from its other buffers, got buffer " +
             text(results[r]) + " twice");
        return false;
      }
    }
    return true;
  }

  // Weight versions. "The newest weights" move with each optimizer step, so
  // what must agree is the number of steps before a version, not its distance
  // from the newest.

  struct Read {
    int64_t version; ///< steps before the weights that the forward read
    uint8_t worked;  ///< parts that have run forward in `section`
    uint8_t section; ///< 1-based; 0: no forward yet
  };

  bool prepareVersions() {
    uint64_t cells = uint64_t(stages) * program.micro_batches;
    uint64_t instructions = 0;
    for (const auto &each : program.workers)
      instructions += each->instructions.size();
    // A forward covers a few micro-batches at most, so a program with far more
    // cells than instructions is none, and would cost memory to look at.
    if (cells > (uint64_t(1) << 20) && cells / 64 > instructions) {
      report.add(Rule::Structure,
                 "expected forwards for " + text(stages) + " stages and " +
                     text(program.micro_batches) + " micro-batches, got " +
                     text(instructions) + " instructions");
      return false;
    }
    reads.resize(cells);
    mostCovered = 1024 * (cells + instructions);
    steps.resize(program.pipelines.size() * stages);
    return true;
  }

  void verifyVersion(const Instruction &instruction) {
    Opcode opcode = instruction.opcode();
    if (opcode == Opcode::ZeroGradient)
      return;
    int64_t &taken =
        steps[instruction.pipeline() * size_t(stages) + instruction.stage()];
    if (opcode == Opcode::OptimizerStep) {
      ++taken;
      return;
    }
    covered += instruction.micro_batches();
    if (covered > mostCovered)
      return fail("expected each micro-batch to be worked on by at most 1024 "
                  "actions of a stage");
    int64_t version = taken - instruction.weight_version();
    Read *read = &reads[instruction.stage() * size_t(program.micro_batches) +
                        instruction.micro_batch()];
    for (uint32_t k = 0; k < instruction.micro_batches(); ++k, ++read) {
      uint32_t m = instruction.micro_batch() + k;
      if (opcode != Opcode::Forward) {
        // Without a forward in the stream so far it was in the step before.
        if (read->section != 0 && read->version != version)
          return fail("expected the weights that the forward of micro-batch " +
                      text(m) + " read, got a version " +
                      text(uint64_t(std::abs(read->version - version))) +
                      (version > read->version ? " newer" : " older"));
        continue;
      }
      if (read->section != section) {
        *read = {version, 0, static_cast<uint8_t>(section)};
      } else if (read->worked >= instruction.parts()) {
        return fail("second forward of micro-batch " + text(m));
      } else if (read->version != version) {
        return fail("expected all parts of micro-batch " + text(m) +
                    " to read the same weights");
      }
      ++read->worked;
    }
  }

  const ProgramT &program;
  const Facts &facts;
  Report &report;
  uint32_t stages;
  Signature signatures[size_t(Opcode::MAX) + 1][4];
  std::vector<uint32_t> pipelineOf; ///< by micro-batch
  std::vector<uint32_t> runEnd;     ///< by micro-batch
  std::vector<Read> reads;          ///< by stage, then micro-batch
  std::vector<int64_t> steps;       ///< by pipeline, then stage
  // Micro-batches that all actions name, and a limit that keeps a hostile
  // program from naming all of them in each.
  uint64_t covered = 0;
  uint64_t mostCovered = 0;

  // Where the walk is.
  uint32_t w = 0;
  const WorkerT *worker = nullptr;
  uint32_t section = 0;
  uint32_t i = 0;
  uint32_t end = 0;
};

} // namespace

void verifyInstructions(const ProgramT &program, const Facts &facts,
                        Report &report) {
  InstructionVerifier(program, facts, report).run();
}

} // namespace chimera::program::verify
