//===- Timing.cpp - When each instruction ran -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a synchronous device, the host reads its clock before and after an
// instruction. An asynchronous device has its own clock: its queue records a
// point before and a point after the operations of an instruction. The time
// between two points is known when both have passed.
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;

void Interpreter::executeTimed(const Instruction &instruction) {
  const uint64_t section = inPrologue ? 0 : step + 1;
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

/// Adds the device's times for a step that has ended.
void Interpreter::profileStep(const QueuedStep &step) {
  for (const Timed &each : step.timed)
    addToProfile(worker.instructions[each.instruction],
                 device.nanosecondsBetween(each.begin, each.end));
  options.profile->addStep(
      device.nanosecondsBetween(stepBeginOnDevice, step.end));
  stepBeginOnDevice = step.end;
}

/// Keeps the recorded points of a step that has ended. They become times at the
/// end of the run, unless later steps replace the step in the trace.
void Interpreter::keepForTrace(QueuedStep &step) {
  tracedOnDevice.push_back(std::move(step.timed));
  // An entry has one section. Only the entry of the first step also has the
  // prologue.
  while (tracedOnDevice.size() > options.trace->mostSections())
    tracedOnDevice.pop_front();
}

/// Adds the last steps to the trace, in times of the host's clock. The two
/// clocks are related through one moment: after the wait below, the last point
/// on the device has just passed.
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
