//===- Profile.cpp - Durations of actions and waits -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Profile.h"

#include "runtime/program/ModelKey.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace chimera;
using namespace chimera::runtime;
using nlohmann::ordered_json;
using program::Instruction;
using program::Opcode;

namespace {
constexpr size_t kMaxSamples = 4096;

/// The kind of event under which an instruction's duration is recorded.
Profile::Key keyOf(const Instruction &instruction, const Instruction *posted) {
  auto kind = [](const Instruction &post) {
    return static_cast<int64_t>(post.kind());
  };
  switch (instruction.opcode()) {
  case Opcode::Load:
  case Opcode::Forward:
  case Opcode::Backward:
  case Opcode::InputGradient:
  case Opcode::WeightGradient:
  case Opcode::Recompute:
  case Opcode::OptimizerStep:
    return {Profile::Key::Action, instruction.opcode(), instruction.stage()};
  case Opcode::Wait:
    return {Profile::Key::Wait, posted->opcode(), kind(*posted)};
  case Opcode::PostSend:
  case Opcode::PostRecv:
  case Opcode::AllReduceStart:
    return {Profile::Key::Post, instruction.opcode(), kind(instruction)};
  case Opcode::ZeroGradient:
  case Opcode::SquaredNorm:
  case Opcode::Group:
  case Opcode::Copy:
  case Opcode::Rename:
  case Opcode::Split:
  case Opcode::Join:
    break;
  }
  return {Profile::Key::Other, instruction.opcode(), 0};
}

ordered_json toJson(const Durations &durations) {
  return {{"count", durations.count()},
          {"total", durations.total()},
          {"median", durations.median()},
          {"min", durations.min()},
          {"max", durations.max()}};
}

/// For example "receive_activation".
std::string nameOfTransfer(const Profile::Key &key) {
  std::string name = key.opcode == Opcode::PostSend   ? "send "
                     : key.opcode == Opcode::PostRecv ? "receive "
                                                      : "all_reduce ";
  name += program::nameOf(static_cast<program::ValueKind>(key.index));
  std::ranges::replace(name, ' ', '_');
  return name;
}

ordered_json toJson(const program::OptimizerT &optimizer) {
  return {{"name", optimizer.name},
          {"learning_rate", optimizer.learning_rate},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"epsilon", optimizer.epsilon},
          {"weight_decay", optimizer.weight_decay},
          {"momentum", optimizer.momentum}};
}

/// Adds the properties of a program by which its profile is recognised.
void addProgram(ordered_json &document, const program::ProgramT &program) {
  document["name"] = program.name;
  document["schedule"] = program.schedule;
  document["workers"] = program.workers.size();
  document["copies"] = program.data_parallel;
  document["micro_batches"] = program.micro_batches;
  document["micro_batch_size"] = program.micro_batch_size;
  if (program.model)
    document["model"] = ordered_json::parse(program::modelKey(*program.model));
  document["weight_type"] = program::nameOf(program.weight_type);
  document["activation_type"] = program::nameOf(program.activation_type);
  document["optimizer"] = toJson(*program.optimizer);
}
} // namespace

void Durations::add(int64_t nanoseconds) {
  if (number++ % static_cast<uint64_t>(stride) == 0)
    samples.push_back({nanoseconds, stride});
  sum += nanoseconds;
  smallest = std::min(smallest, nanoseconds);
  largest = std::max(largest, nanoseconds);
  if (samples.size() < kMaxSamples)
    return;
  // Drop every second sample. From now on, take a sample half as often.
  stride *= 2;
  for (size_t i = 0; i < samples.size() / 2; ++i)
    samples[i] = {samples[2 * i].nanoseconds, stride};
  samples.resize(samples.size() / 2);
}

void Durations::merge(const Durations &other) {
  number += other.number;
  sum += other.sum;
  smallest = std::min(smallest, other.smallest);
  largest = std::max(largest, other.largest);
  samples.insert(samples.end(), other.samples.begin(), other.samples.end());
}

int64_t Durations::median() const {
  std::vector<Sample> sorted = samples;
  std::ranges::sort(sorted, {}, &Sample::nanoseconds);
  int64_t all = 0;
  for (const Sample &sample : sorted)
    all += sample.weight;
  int64_t below = 0;
  for (const Sample &sample : sorted)
    if ((below += sample.weight) * 2 >= all)
      return sample.nanoseconds;
  return 0;
}

void Profile::add(const Instruction &instruction, const Instruction *posted,
                  int64_t nanoseconds) {
  const Key key = keyOf(instruction, posted);
  // The time of an optimizer step is not converted. An optimizer step does not
  // compute for each micro-batch: its micro_batches() are those whose gradients
  // were summed.
  if (key.group == Key::Action && key.opcode != Opcode::OptimizerStep)
    nanoseconds = nanoseconds * std::max<int64_t>(1, instruction.parts()) /
                  std::max<int64_t>(1, instruction.micro_batches());
  Durations &durations = times[key];
  if (!onlyOfFirstStep.empty() && onlyOfFirstStep.erase(key) > 0)
    durations = {};
  durations.add(nanoseconds);
}

void Profile::addStep(int64_t nanoseconds) {
  if (first > 0)
    return laterSteps.add(nanoseconds);
  first = nanoseconds;
  for (const auto &[key, durations] : times)
    onlyOfFirstStep.insert(key);
}

std::vector<int64_t> Profile::pack() const {
  std::vector<int64_t> packed{first};
  auto add = [&](const Key &key, const Durations &durations) {
    packed.insert(packed.end(),
                  {key.group, static_cast<int64_t>(key.opcode), key.index,
                   static_cast<int64_t>(durations.number), durations.sum,
                   durations.smallest, durations.largest,
                   static_cast<int64_t>(durations.samples.size())});
    for (const Durations::Sample &sample : durations.samples)
      packed.insert(packed.end(), {sample.nanoseconds, sample.weight});
  };
  // The first entry has the durations of the steps. Its key has no meaning.
  add({}, laterSteps);
  for (const auto &[key, durations] : times)
    add(key, durations);
  return packed;
}

Profile Profile::unpack(const std::vector<int64_t> &packed) {
  Profile profile;
  size_t at = 0;
  auto next = [&] { return packed.at(at++); };
  profile.first = next();
  for (bool steps = true; at < packed.size(); steps = false) {
    Key key;
    key.group = static_cast<Key::Group>(next());
    key.opcode = static_cast<Opcode>(next());
    key.index = next();
    Durations &durations = steps ? profile.laterSteps : profile.times[key];
    durations.number = static_cast<uint64_t>(next());
    durations.sum = next();
    durations.smallest = next();
    durations.largest = next();
    durations.samples.resize(static_cast<size_t>(next()));
    for (Durations::Sample &sample : durations.samples) {
      sample.nanoseconds = next();
      sample.weight = next();
    }
  }
  return profile;
}

std::string chimera::runtime::formatProfile(
    const program::ProgramT &program, const std::vector<Profile> &ranks,
    uint32_t root, const RunConditions &conditions, RunSteps stepsOfRun,
    const std::vector<std::string> &earlier) {
  using Key = Profile::Key;
  ordered_json document;
  addProgram(document, program);
  document["computed_by"] = conditions.stages;
  document["device"] = conditions.device;
  document["threads"] = conditions.threads;
  if (conditions.coresPerRank > 0)
    document["cores_per_rank"] = conditions.coresPerRank;
  document["unit"] = "ns";
  document["first_step"] = stepsOfRun.first + 1;
  document["last_step"] = stepsOfRun.end;
  const Profile &atRoot = ranks.at(root);
  ordered_json &steps = document["steps"];
  steps["first"] = atRoot.firstStep();
  if (atRoot.steps().count())
    steps["later"] = toJson(atRoot.steps());

  std::map<std::pair<int64_t, Opcode>, Durations> actions;
  for (const Profile &rank : ranks)
    for (const auto &[key, durations] : rank.durations())
      if (key.group == Key::Action)
        actions[{key.index, key.opcode}].merge(durations);
  ordered_json &stages = document["stages"] = ordered_json::array();
  for (size_t stage = 0; stage < program.stages.size(); ++stage) {
    ordered_json entry = {{"stage", stage}};
    const program::Stage &of = program.stages[stage];
    if (program.model)
      entry["layers"] = {of.first_layer(), of.first_layer() + of.layers()};
    stages.push_back(std::move(entry));
  }
  for (const auto &[key, durations] : actions)
    stages.at(static_cast<size_t>(key.first))[program::nameOf(key.second)] =
        toJson(durations);

  ordered_json &list = document["ranks"] = ordered_json::array();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ordered_json entry;
    entry["rank"] = rank;
    entry["worker"] = rank % program.workers.size();
    for (const char *group : {"waits", "posts", "other"})
      entry[group] = ordered_json::object();
    for (const auto &[key, durations] : ranks[rank].durations())
      if (key.group == Key::Other)
        entry["other"][program::nameOf(key.opcode)] = toJson(durations);
      else if (key.group != Key::Action)
        entry[key.group == Key::Wait ? "waits" : "posts"][nameOfTransfer(key)] =
            toJson(durations);
    list.push_back(std::move(entry));
  }
  for (const std::string &run : earlier)
    document["earlier_runs"].push_back(ordered_json::parse(run));
  // The program's name may have bytes that are not UTF-8. They are replaced.
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}
