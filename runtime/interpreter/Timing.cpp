//===- Timing.cpp - When each instruction ran -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The measurement of instructions, for profiles and traces. On a synchronous
// device, the host reads its clock before and after each instruction. An
// asynchronous device has its own clock. For it, the host enqueues one event
// before and one event after the operations of an instruction. When the device
// has passed the two events, the time between them is known.
//
// The share of a step in which the rank waited needs no clock of its own: the
// status page has the time at which each instruction began, so a wait ends when
// the next instruction or the next step begins.
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include <utility>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;

void Interpreter::executeTimed(const Instruction &instruction) {
  const uint64_t section = inPrologue ? step : step + 1;
  if (!device.isSynchronous()) {
    Event begin = compute->recordTime();
    executeOne(instruction, index, step);
    timed.push_back({section, index, std::move(begin), compute->recordTime()});
    return;
  }
  const int64_t begin = steadyNanoseconds();
  executeOne(instruction, index, step);
  const int64_t end = steadyNanoseconds();
  if (options.profile)
    addToProfile(instruction, end - begin);
  if (options.trace)
    options.trace->add(section, {index, begin, end});
}

void Interpreter::addToProfile(const Instruction &instruction,
                               int64_t nanoseconds) {
  const Instruction *posted = instruction.opcode() == Opcode::Wait
                                  ? &worker.instructions[instruction.target()]
                                  : nullptr;
  options.profile->add(instruction, posted, nanoseconds);
}

/// If the previous instruction was a wait, it ended `now`.
void Interpreter::endWait(int64_t now) {
  if (waitBegin)
    waitedInStep += now - *std::exchange(waitBegin, std::nullopt);
}

/// Measures the step that ends now on a synchronous device.
void Interpreter::measureStep() {
  const int64_t now = steadyNanoseconds();
  const int64_t took = now - std::exchange(stepBegin, now);
  endWait(now);
  setWaitingShare(std::exchange(waitedInStep, 0), took);
  if (options.profile)
    options.profile->addStep(took);
}

void Interpreter::setWaitingShare(int64_t waited, int64_t took) {
  shareOfWaiting =
      took > 0 ? static_cast<double>(waited) / static_cast<double>(took) : 0;
}

/// Adds the device's times for a step that has ended.
void Interpreter::profileStep(const QueuedStep &step) {
  int64_t waited = 0;
  for (const Timed &each : step.timed) {
    const Instruction &instruction = worker.instructions[each.instruction];
    const int64_t took = device.nanosecondsBetween(each.begin, each.end);
    addToProfile(instruction, took);
    if (instruction.opcode() == Opcode::Wait)
      waited += took;
  }
  const int64_t took = device.nanosecondsBetween(stepBeginOnDevice, step.end);
  options.profile->addStep(took);
  setWaitingShare(waited, took);
  stepBeginOnDevice = step.end;
}

/// Keeps the events of a step that has ended. At the end of the run,
/// traceDevice converts the events of the last steps to times.
void Interpreter::keepForTrace(QueuedStep &step) {
  tracedOnDevice.push_back(std::move(step.timed));
  // An entry has the events of one section. Only the entry of the first step
  // has two sections: the prologue and the body.
  while (tracedOnDevice.size() > options.trace->mostSections())
    tracedOnDevice.pop_front();
}

/// Adds the last steps to the trace, in times of the host's clock. To relate
/// the two clocks, the host waits for an event and then reads its own clock: at
/// this moment, the device has just passed the event.
void Interpreter::traceDevice() {
  const Event last = compute->recordTime();
  device.waitFor(last, options.timeout);
  const int64_t now = steadyNanoseconds();
  auto at = [&](const Event &event) {
    return now - device.nanosecondsBetween(event, last);
  };
  for (const std::vector<Timed> &step : tracedOnDevice)
    for (const Timed &each : step)
      options.trace->add(each.section,
                         {each.instruction, at(each.begin), at(each.end)});
  tracedOnDevice.clear();
}
