//===- TraceFormat.cpp - Traces as a file of events -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/TraceFormat.h"

#include "runtime/program/Printable.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

using namespace chimera;
using namespace chimera::runtime;
using nlohmann::ordered_json;
using program::Instruction;
using program::Opcode;
using program::ValueKind;

namespace {
bool isAction(Opcode opcode) {
  switch (opcode) {
  case Opcode::Forward:
  case Opcode::Backward:
  case Opcode::InputGradient:
  case Opcode::WeightGradient:
  case Opcode::Recompute:
    return true;
  default:
    return false;
  }
}

std::string nameOf(uint32_t worker) { return "P" + std::to_string(worker); }

/// One line of JSON. Bytes that are not UTF-8 are replaced.
std::string lineOf(const ordered_json &value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

class Formatter {
public:
  Formatter(const program::ProgramT &program, const std::vector<Trace> &ranks,
            const EarlierTrace &earlier)
      : program(program), ranks(ranks), earlier(earlier) {
    uint64_t newest = 0, most = 0;
    for (const Trace &rank : ranks) {
      most = std::max<uint64_t>(most, rank.mostSections());
      for (const Trace::Section &section : rank.kept())
        newest = std::max(newest, section.number);
    }
    oldest = newest - std::min(newest, most - std::min<uint64_t>(most, 1));
    origin = INT64_MAX;
    firstStep = newest;
    uint64_t lastStep = 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      worker = static_cast<uint32_t>(rank % program.workers.size());
      for (const Trace::Section &section : ranks[rank].kept())
        if (section.number >= oldest)
          for (const Trace::Span &span : section.spans) {
            origin = std::min(origin, span.begin);
            firstStep = std::min(firstStep, stepOf(section, span));
            lastStep = std::max(lastStep, stepOf(section, span));
          }
    }
    steps = std::max(lastStep, firstStep) - firstStep + 1;
    if (!earlier.runs.empty())
      shift = std::ceil(earlier.end);
  }

  std::string format(std::optional<int64_t> clockError,
                     const RunConditions &conditions) {
    const auto workers = static_cast<uint32_t>(program.workers.size());
    for (uint32_t copy = 0; copy < program.data_parallel; ++copy) {
      addNames(copy);
      for (worker = 0; worker < workers; ++worker) {
        process = copy;
        for (const Trace::Section &section :
             ranks.at(copy * workers + worker).kept())
          if (section.number >= oldest)
            addSection(section);
      }
    }
    addArrows();
    ordered_json other = {{"unit", {{program.name, "measured, in us"}}},
                          {"first_step", firstStep + 1},
                          {"steps", steps},
                          {"threads", conditions.threads}};
    if (conditions.coresPerRank > 0)
      other["cores_per_rank"] = conditions.coresPerRank;
    if (clockError)
      other["largest_half_round_trip_ns"] = *clockError;
    if (!earlier.runs.empty()) {
      other["first_process"] = earlier.processes;
      for (const EarlierTrace::Run &run : earlier.runs)
        other["earlier"].push_back({{"first_step", run.firstStep},
                                    {"steps", run.steps},
                                    {"first_process", run.firstProcess}});
    }
    if (!earlier.events.empty())
      text = earlier.events + (text.empty() ? "" : ",\n") + text;
    return "{\"displayTimeUnit\":\"ns\",\n\"otherData\":" + lineOf(other) +
           ",\n\"traceEvents\":[\n" + text + "\n]}\n";
  }

private:
  /// One end of the arrow of a message: the action that computes or uses the
  /// value.
  struct End {
    std::string name;
    int64_t middle; ///< the time in the middle of the action
    uint32_t peer;
  };
  struct Arrow {
    std::optional<End> from, to;
  };
  /// Identifies a message: the copy, the section, the sender, the receiver, and
  /// the number of messages from this sender to this receiver before it in the
  /// section.
  using MessageKey =
      std::tuple<uint32_t, uint64_t, uint32_t, uint32_t, uint64_t>;

  /// The step, from 0, in which the current worker's section has this span.
  uint64_t stepOf(const Trace::Section &section,
                  const Trace::Span &span) const {
    const bool isPrologue = span.instruction < stream().body_begin;
    return isPrologue || section.number == 0 ? section.number
                                             : section.number - 1;
  }

  const program::WorkerT &stream() const { return *program.workers[worker]; }

  static double microseconds(int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1000;
  }
  /// The time of an event in the file, in microseconds.
  double timeOf(int64_t nanoseconds) const {
    return shift + microseconds(nanoseconds - origin);
  }
  /// The process of a copy in the file.
  uint64_t processOf(uint32_t copy) const { return earlier.processes + copy; }

  void add(const ordered_json &event) {
    text += (text.empty() ? "" : ",\n") + lineOf(event);
  }

  void addNames(uint32_t copy) {
    auto describe = [&](const char *what, uint32_t thread,
                        const ordered_json &arguments) {
      add({{"name", what},
           {"ph", "M"},
           {"pid", processOf(copy)},
           {"tid", thread},
           {"args", arguments}});
    };
    std::string title =
        program::printable(program.name) + ": " +
        program::printable(program.schedule) + ", " +
        program::countWithNoun(program.stages.size(), "stage") +
        (program.stages.size() == program.workers.size()
             ? ""
             : " on " +
                   program::countWithNoun(program.workers.size(), "worker")) +
        ", " + program::countWithNoun(program.micro_batches, "micro-batch");
    if (program.data_parallel > 1)
      title += ", copy " + std::to_string(copy) + " of " +
               std::to_string(program.data_parallel);
    title += ", step " + std::to_string(firstStep + 1);
    if (steps > 1)
      title += " to " + std::to_string(firstStep + steps);
    describe("process_name", 0, {{"name", title}});
    describe("process_sort_index", 0, {{"sort_index", processOf(copy)}});
    for (uint32_t w = 0; w < program.workers.size(); ++w) {
      describe("thread_name", w, {{"name", nameOf(w)}});
      describe("thread_sort_index", w, {{"sort_index", w}});
    }
  }

  /// The number of the micro-batch. The numbers continue from step to step, as
  /// in the compiler's traces. The first step of the trace begins with 0.
  uint64_t microBatchOf(const Instruction &instruction) const {
    return (spanStep - firstStep) * program.micro_batches +
           instruction.micro_batch();
  }

  /// The micro-batches of an action in the compiler's notation (Timeline.h):
  /// "3", "2-3", "3a". If a worker has several stages of a pipeline, actions of
  /// its second stage have "'" at the end, and actions of its third stage have
  /// "'2".
  std::string coverOf(const Instruction &of, uint32_t stage) const {
    const uint64_t first = microBatchOf(of), count = of.micro_batches();
    std::string cover = std::to_string(first);
    const bool digits = program.micro_batches * steps <= 10;
    if (count > 1)
      cover +=
          (count == 2 && digits ? "" : "-") + std::to_string(first + count - 1);
    else if (of.parts() > 26)
      cover += "." + std::to_string(of.part());
    else if (of.parts() > 1)
      cover += static_cast<char>('a' + of.part());
    const auto &place = program.pipelines[of.pipeline()]->workers;
    if (place.size() == program.workers.size())
      return cover;
    auto own = place.begin() + stage;
    auto chunk = std::count(place.begin(), own, *own);
    return cover + (chunk == 0   ? ""
                    : chunk == 1 ? "'"
                                 : "'" + std::to_string(chunk));
  }

  /// For example "all-reduce of stage 1".
  std::string nameOfSum(const Instruction &start) const {
    const program::CommunicatorT &sum = *program.communicators[start.target()];
    return "all-reduce of " + (sum.kind == ValueKind::Loss          ? "the loss"
                               : sum.kind == ValueKind::SquaredNorm ? "the norm"
                               : program::reducesTiedParameters(sum)
                                   ? "tied weights"
                                   : "stage " + std::to_string(start.stage()));
  }

  std::string nameOfMessage(const Instruction &post) const {
    return std::string(program::nameOf(post.kind())) + " " +
           coverOf(post, post.stage());
  }

  void addSpan(const std::string &name, const char *category,
               const Trace::Span &span, ordered_json arguments = {}) {
    ordered_json event = {{"name", name},
                          {"cat", category},
                          {"ph", "X"},
                          {"ts", timeOf(span.begin)},
                          {"dur", microseconds(span.end - span.begin)},
                          {"pid", processOf(process)},
                          {"tid", worker}};
    if (!arguments.is_null())
      event["args"] = std::move(arguments);
    add(event);
  }

  void addAction(const Instruction &of, const Trace::Span &span) {
    const char *kind = program::nameOf(of.opcode());
    ordered_json arguments = {{"worker", worker},
                              {"kind", kind},
                              {"pipeline", of.pipeline()},
                              {"stage", of.stage()},
                              {"micro_batch", microBatchOf(of)}};
    if (steps > 1)
      arguments["step"] = microBatchOf(of) / program.micro_batches;
    if (of.micro_batches() > 1)
      arguments["micro_batches"] = of.micro_batches();
    if (of.parts() > 1) {
      arguments["part"] = of.part();
      arguments["parts"] = of.parts();
    }
    addSpan(std::string(kind) + " " + coverOf(of, of.stage()), kind, span,
            std::move(arguments));
  }

  void addMessageWait(const Instruction &post, const Trace::Span &span) {
    const bool isSend = post.opcode() == Opcode::PostSend;
    addSpan((isSend ? "send " : "receive ") + nameOfMessage(post),
            "message wait", span,
            {{isSend ? "to" : "from", nameOf(post.target())}});
  }

  void addSection(const Trace::Section &section) {
    for (const Trace::Span &span : section.spans) {
      spanStep = stepOf(section, span);
      const Instruction &of = stream().instructions[span.instruction];
      switch (of.opcode()) {
      case Opcode::Forward:
      case Opcode::Backward:
      case Opcode::InputGradient:
      case Opcode::WeightGradient:
      case Opcode::Recompute:
        addAction(of, span);
        break;
      case Opcode::OptimizerStep:
        addSpan("update of stage " + std::to_string(of.stage()), "update",
                span);
        break;
      case Opcode::Wait: {
        const Instruction &posted = stream().instructions[of.target()];
        if (posted.opcode() == Opcode::AllReduceStart)
          addSpan("wait for " + nameOfSum(posted), "wait", span);
        else
          addMessageWait(posted, span);
        break;
      }
      case Opcode::PostSend:
      case Opcode::PostRecv:
        addSpan((of.opcode() == Opcode::PostSend ? "post the send of "
                                                 : "post the receive of ") +
                    nameOfMessage(of),
                "post", span);
        break;
      case Opcode::AllReduceStart:
        addSpan("start " + nameOfSum(of), "post", span);
        break;
      case Opcode::Load:
        addSpan("load " + std::string(program::nameOf(of.kind())) + " " +
                    coverOf(of, of.stage()),
                "other", span);
        break;
      case Opcode::ZeroGradient:
        addSpan("zero the gradient of stage " + std::to_string(of.stage()),
                "other", span);
        break;
      case Opcode::SquaredNorm:
        addSpan("norm of stage " + std::to_string(of.stage()), "other", span);
        break;
      case Opcode::Copy:
        addSpan("copy of stage " + std::to_string(of.stage()), "other", span);
        break;
      case Opcode::Group:
      case Opcode::Split:
      case Opcode::Join:
      case Opcode::Rename:
        break; // these instructions take no time
      }
    }
    findArrows(section);
  }

  /// Whether `action` is an action of `stage` that has the pipeline,
  /// micro-batch, part and direction of a message. Such an action computes or
  /// uses the value of the message.
  static bool isOf(const Instruction &action, const Instruction &message,
                   uint32_t stage) {
    const bool isForward = action.opcode() == Opcode::Forward;
    return isAction(action.opcode()) &&
           action.opcode() != Opcode::WeightGradient &&
           isForward == (message.kind() == ValueKind::Activation) &&
           action.pipeline() == message.pipeline() && action.stage() == stage &&
           action.micro_batch() == message.micro_batch() &&
           action.part() == message.part();
  }

  /// Finds the sending ends and the receiving ends of messages in a section.
  /// Both ends of a message are in the same section. The k-th receive from a
  /// worker receives the k-th send of that worker to this worker.
  void findArrows(const Trace::Section &section) {
    std::map<uint32_t, uint64_t> sent, received; // number of posts, by peer
    std::map<uint32_t, MessageKey> awaited;      // by index of the post
    const std::vector<Trace::Span> &spans = section.spans;
    auto at = [&](size_t i) -> const Instruction & {
      return stream().instructions[spans[i].instruction];
    };
    auto endAt = [&](size_t i, uint32_t peer) {
      spanStep = stepOf(section, spans[i]);
      return End{
          (at(i).opcode() == Opcode::Forward ? "activation " : "gradient ") +
              coverOf(at(i), at(i).stage()),
          (spans[i].begin + spans[i].end) / 2, peer};
    };
    for (size_t i = 0; i < spans.size(); ++i) {
      const Instruction &of = at(i);
      if (of.opcode() == Opcode::PostSend) {
        Arrow &arrow = arrows[{process, section.number, worker, of.target(),
                               sent[of.target()]++}];
        for (size_t j = i; j-- > 0 && !arrow.from;)
          if (isOf(at(j), of, of.stage()))
            arrow.from = endAt(j, of.target());
      } else if (of.opcode() == Opcode::PostRecv) {
        awaited[spans[i].instruction] = {process, section.number, of.target(),
                                         worker, received[of.target()]++};
      } else if (of.opcode() == Opcode::Wait && awaited.contains(of.target())) {
        const Instruction &post = stream().instructions[of.target()];
        const uint32_t stage = post.kind() == ValueKind::Activation
                                   ? post.stage() + 1u
                                   : post.stage() - 1u;
        Arrow &arrow = arrows[awaited[of.target()]];
        for (size_t j = i + 1; j < spans.size() && !arrow.to; ++j)
          if (isOf(at(j), post, stage))
            arrow.to = endAt(j, post.target());
      }
    }
  }

  void addArrows() {
    uint64_t id = earlier.arrows;
    for (const auto &[key, arrow] : arrows) {
      if (!arrow.from || !arrow.to)
        continue;
      auto addEnd = [&](bool isStart, const End &end, uint32_t thread) {
        ordered_json event = {{"name", end.name},
                              {"cat", "message"},
                              {"ph", isStart ? "s" : "f"},
                              {"id", id},
                              {"ts", timeOf(end.middle)},
                              {"pid", processOf(std::get<0>(key))},
                              {"tid", thread}};
        if (!isStart)
          // Bind to the enclosing action, not to the next one.
          event["bp"] = "e";
        event["args"] = {{isStart ? "to" : "from", nameOf(end.peer)}};
        add(event);
      };
      addEnd(true, *arrow.from, std::get<2>(key));
      addEnd(false, *arrow.to, std::get<3>(key));
      ++id;
    }
  }

  const program::ProgramT &program;
  const std::vector<Trace> &ranks;
  const EarlierTrace &earlier;
  double shift = 0; ///< of all times, in microseconds
  uint64_t oldest = 0, firstStep = 0, steps = 1;
  int64_t origin = 0;
  std::string text;
  std::map<MessageKey, Arrow> arrows;
  // The copy, the worker and the step of the events that are currently added.
  uint32_t process = 0, worker = 0;
  uint64_t spanStep = 0;
};
} // namespace

std::string chimera::runtime::formatTrace(const program::ProgramT &program,
                                          const std::vector<Trace> &ranks,
                                          std::optional<int64_t> clockError,
                                          const RunConditions &conditions,
                                          const EarlierTrace &earlier) {
  return Formatter(program, ranks, earlier).format(clockError, conditions);
}
