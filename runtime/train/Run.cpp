//===- Run.cpp - A training run from first step to result -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Run.h"

#include "runtime/channel/InProcess.h"
#include "runtime/control/InProcess.h"
#include "runtime/control/Messages.h"
#include "runtime/device/Host.h"
#include "runtime/interpreter/Communication.h"
#include "runtime/interpreter/PlannedLoads.h"
#include "runtime/model/LearningRate.h"
#include "runtime/program/File.h"
#include "runtime/system/Deadline.h"
#include "runtime/train/AbortScope.h"
#include "runtime/train/Capacity.h"
#include "runtime/train/CheckpointedSteps.h"
#include "runtime/train/FinishRank.h"
#include "runtime/train/OnThreads.h"
#include "runtime/train/RunEnd.h"
#include "runtime/train/StepVote.h"
#include "runtime/train/UseMeter.h"
#include "runtime/watch/CallWatch.h"
#include "runtime/watch/Report.h"
#include "runtime/watch/Watchdog.h"
#include "runtime/watch/Watcher.h"

#include <algorithm>
#include <iterator>

using namespace chimera;
using namespace chimera::runtime;

uint32_t chimera::runtime::readAheadOf(const TrainingRun &run,
                                       uint32_t worker) {
  // On accelerators, the samples are in the memory of the host.
  if (run.readAhead == 0 || run.accelerator)
    return run.readAhead;
  const uint64_t copy =
      run.checkpoints ? checkpointCopyBytes(run.program, worker) : 0;
  return stepsThatFit(run.program, *run.program.workers[worker], copy,
                      run.readAhead);
}

std::vector<uint64_t>
chimera::runtime::readAheadBytesOf(const TrainingRun &run) {
  std::vector<uint64_t> bytes;
  for (uint32_t worker = 0; worker < run.program.workers.size(); ++worker)
    bytes.push_back(readAheadBytes(run.program, *run.program.workers[worker],
                                   readAheadOf(run, worker)));
  return bytes;
}

void chimera::runtime::checkRun(const TrainingRun &run) {
  if (run.gatherGradients && run.steps <= run.firstStep)
    throw std::invalid_argument("expected at least one step to gather the "
                                "gradients of the last step, got none");
  if (run.evaluation.every > 0 &&
      run.program.updates != program::Updates::Flush)
    throw std::invalid_argument(
        "expected a schedule with a flush for evaluations between steps, got " +
        run.program.schedule +
        ": without one, the stages never all have the weights of the same "
        "step; leave out --evaluate-every to evaluate only at the end");
  if (run.checkpoints && !run.accelerator)
    if (std::string fault = checkpointMemoryError(run.program); !fault.empty())
      throw std::invalid_argument(fault);
  auto areWeighed = [](const DataSource *data) {
    return !data || data->weighsLosses();
  };
  for (uint32_t stage = 0; stage < run.program.stages.size(); ++stage)
    if (run.stages(run.program, stage)->needsLossWeights() &&
        (!areWeighed(&run.data) || !areWeighed(run.evaluation.data)))
      throw std::invalid_argument(
          "expected data with the weights of losses, because the model's loss "
          "is a sum: wrap the data in withLossWeights (GraphStage.h)");
}

namespace {
/// The values that all ranks of `run` must have in common.
std::vector<AgreedValue> agreedValuesOf(const TrainingRun &run) {
  std::vector<AgreedValue> agreedValues = run.programOptions;
  agreedValues.push_back(
      {"program", program::checksum(program::serialize(run.program))});
  // The values of the caller come next. They are named after options, and the
  // values below depend on these options. So if an option differs, the error
  // names the option.
  std::ranges::copy(run.agreedValues, std::back_inserter(agreedValues));
  agreedValues.insert(
      agreedValues.end(),
      {{"number of steps", run.steps},
       {"number of steps before this run", run.firstStep},
       {"number of updates before this run", firstUpdateOf(run)},
       {"--checkpoint-every", run.checkpoints ? run.checkpoints->every : 0},
       {"--keep", run.checkpoints ? run.checkpoints->keep : 0},
       {"--check-replicas", run.checkReplicas},
       // The timeout must be equal, because the root's rate of heartbeats
       // depends on it.
       {"--timeout", static_cast<uint64_t>(run.timeout.count())},
       {"request for weights", run.gatherWeights},
       {"request for gradients", run.gatherGradients},
       {"request for a digest", run.digestWeights},
       {"request for a profile", run.profile},
       {"--trace-steps", run.traceSteps},
       {"passes of an evaluation", run.evaluation.passes},
       {"--evaluate-every", run.evaluation.every}});
  return agreedValues;
}

/// Registers a listener at a device for the lifetime of this object.
class ListenerScope {
public:
  ListenerScope(Device &device, Device::Listener listener) : device(device) {
    device.setListener(std::move(listener));
  }
  ~ListenerScope() { device.setListener(std::nullopt); }

private:
  Device &device;
};

/// Decides on the page of the only host what happens before `step`.
StepDecision decideOnPage(const program::ProgramT &program, uint32_t rank,
                          StatusPage &page, uint64_t step) {
  const program::WorkerT &worker =
      *program.workers[rank % program.workers.size()];
  return worker.instructions.empty() ? page.decideAfterOthers(rank, step)
                                     : page.decide(step);
}

/// How a rank learns of the other ranks between steps.
struct BetweenSteps {
  /// Called before each step except the first.
  StepGate::Decide decide;
  /// Called if all ranks have to stop.
  std::function<void()> askToStop;
  /// Called at the root after each step: StepEvent::use.
  std::function<StepUse()> useOfRanks;
  /// Called before each checkpoint and after the last step, unless it is empty.
  std::function<void()> afterSteps = {};
};

/// Runs one rank from start to end. If the run fails and this thread cannot
/// report the failure, calls `fail` with the reason, from any thread.
void runRank(const TrainingRun &run, const Communication &communication,
             Control &control, Device &device, Channels &channels,
             Status &status, const BetweenSteps &between,
             const OnFailure &fail) {
  if (run.onThread)
    run.onThread();
  uint32_t root = rootOf(run.program);
  bool isRoot = control.rank() == root;
  Interpreter::Options options;
  options.firstStep = run.firstStep;
  options.firstUpdate = firstUpdateOf(run);
  options.steps = run.steps;
  options.timeout = run.timeout;
  options.keepGradients = run.gatherGradients;
  StepGate gate(between.decide);
  options.mayBeginStep = [&](uint64_t step) { return gate.mayBegin(step); };
  options.keepFinite = run.keepFinite;
  options.skipNonFinite = run.skipNonFinite;
  options.readAhead = readAheadOf(
      run, static_cast<uint32_t>(control.rank() % run.program.workers.size()));
  options.onHalt = between.askToStop;
  options.meter = run.meter;
  Profile profile;
  if (run.profile)
    options.profile = &profile;
  Trace trace;
  if (run.traceSteps > 0) {
    trace =
        Trace(run.program,
              *run.program.workers[control.rank() % run.program.workers.size()],
              std::min(run.traceSteps, run.steps - run.firstStep));
    options.trace = &trace;
  }
  options.evaluation = evaluationOf(run, isRoot);
  Interpreter interpreter(run.program, communication.groups, run.stages,
                          run.data, device, channels, status, options);

  if (run.accelerator)
    for (int i = 0; i < run.warmUpRuns; ++i)
      interpreter.warmUp();
  ListenerScope listens(device, {.timeout = run.timeout,
                                 .onInstruction =
                                     [&](uint64_t step, uint32_t instruction) {
                                       status.setDevicePosition(step,
                                                                instruction);
                                     },
                                 .onIdle = [&] { status.deviceIsIdle(); },
                                 .onFailure = fail});

  barrier(control, run.timeout, "all ranks to start");
  {
    Watchdog limit(run.timeout, "all ranks to create their communicators",
                   fail);
    channels.prepare(communication);
    control.watch(peersOf(communication, control.rank()));
    // Freeing GPU memory waits for the operations that run on the GPU. So all
    // ranks must have freed their temporary memory before any rank begins a
    // step.
    barrier(control, run.timeout,
            "all ranks to have created their communicators");
  }
  if (std::optional<uint64_t> taken = device.allocatedBytes()) {
    std::string fault = deviceMemoryError(
        *run.program.workers[control.rank() % run.program.workers.size()],
        interpreter.arenaBytes(), interpreter.peakStashBytes(), *taken);
    if (!fault.empty())
      throw std::runtime_error(fault);
  }
  std::unique_ptr<CheckpointWriter> writer;
  if (run.checkpoints)
    writer = makeCheckpointWriter(run, control);
  int64_t begin = steadyNanoseconds();
  auto seconds = [&] {
    return static_cast<double>(steadyNanoseconds() - begin) * 1e-9;
  };
  double ofSteps = 0;
  UseMeter useMeter(&device);
  LossWatch watch(run);
  runSegments(
      run, control, interpreter, status, writer.get(),
      [&](uint64_t step, std::optional<Loss> loss) {
        ofSteps = seconds();
        status.setUse(useMeter.measure(interpreter.waitingShare()));
        if (isRoot && run.onStep)
          run.onStep({step, loss, ofSteps,
                      learningRateAt(*run.program.optimizer, run.steps, step),
                      between.useOfRanks()});
        if (isRoot && watch.mustStop(step, loss))
          between.askToStop();
        if (writer)
          reportCheckpoint(run, writer->poll());
      },
      gate, between.afterSteps,
      [&] {
        return watch.divergence() || !interpreter.halted().empty() ? kHalted
                                                                   : "";
      });
  if (between.afterSteps)
    between.afterSteps();
  // Complete the last checkpoint first, because saving results and evaluating
  // may fail.
  if (writer) {
    status.enter(Status::Saving);
    finishCheckpoint(run, control, *writer);
  }
  status.enter(Status::Finishing);
  const bool goesOn = gatherAndSaveResult(
      run, control, interpreter, watch.divergence(), ofSteps,
      device.allocatedBytes().value_or(0), profile, trace, status, fail);
  if (goesOn && evaluatesAtEnd(run, interpreter.stepsRun()))
    interpreter.evaluate();
  endRank(run, control, status, fail);
}

/// Checks this rank's part of its host's copy of the data. Reports the errors
/// of all ranks (throwFirstError).
void checkData(const TrainingRun &run, Control &control,
               const std::vector<uint32_t> &hostRanks) {
  if (!run.dataError)
    return;
  const auto own = std::ranges::find(hostRanks, control.rank());
  throwFirstError(control,
                  run.dataError(static_cast<uint32_t>(own - hostRanks.begin()),
                                static_cast<uint32_t>(hostRanks.size())),
                  run.timeout);
}

/// If `self` is the lowest of `hostRanks`, reports those of them that are not
/// in `watched`.
void tellOfTheUnwatched(uint32_t self, const std::vector<uint32_t> &hostRanks,
                        const std::vector<uint32_t> &watched) {
  std::string names;
  for (uint32_t rank : hostRanks)
    if (!std::ranges::binary_search(watched, rank))
      names += (names.empty() ? "" : ", ") + std::to_string(rank);
  if (self == hostRanks.front() && !names.empty())
    writeReport(
        "cannot watch these ranks on the host of rank " + std::to_string(self) +
        ": " + names +
        " (are they in other containers?): reports will not include them\n");
}
} // namespace

void chimera::runtime::runInProcess(const TrainingRun &run) {
  uint32_t ranks = program::rankCount(run.program);
  checkThreadCount(ranks);
  StatusPage page(ranks);
  const Communication communication = communicationOf(run.program);
  std::vector<std::unique_ptr<Control>> controls = makeInProcessControls(ranks);
  std::vector<std::unique_ptr<Channels>> ofHost;
  if (!run.accelerator) {
    ofHost = makeInProcessChannels(ranks);
    // All ranks' channels abort if one rank's channels abort, so one handler is
    // enough.
    controls.front()->onAbort(
        [&](const std::string &reason) { ofHost.front()->abort(reason); });
  }
  runOnThreads(run, page, controls, [&](uint32_t rank, const OnFailure &fail) {
    auto runOn = [&](Device &device, Channels &channels) {
      try {
        runRank(run, communication, *controls[rank], device, channels,
                page.of(rank),
                {.decide =
                     [&](uint64_t step) {
                       return decideOnPage(run.program, rank, page, step);
                     },
                 .askToStop = [&] { page.askToStop(); },
                 .useOfRanks = [&] { return page.use(); }},
                fail);
      } catch (const std::exception &error) {
        // Report the failure before the device frees memory, because freeing
        // may wait for operations of other ranks.
        fail(error.what());
        throw;
      }
    };
    if (!run.accelerator)
      return runOn(*makeHostDevice(), *ofHost[rank]);
    Control &control = *controls[rank];
    const std::unique_ptr<Device> device = run.accelerator->makeDevice(
        deviceNumberOf(rank, run.accelerator->devices()), rank);
    const std::unique_ptr<Channels> channels =
        run.accelerator->makeChannels(*device, control, run.timeout);
    AbortScope aborted(control, *channels);
    runOn(*device, *channels);
  });
}

void chimera::runtime::runInJob(const TrainingRun &run, Control &control,
                                Device &device, Channels &channels,
                                const std::vector<uint32_t> &hostRanks) {
  StatusPage page(control, hostRanks, run.timeout);
  page.of(control.rank()).enter(Status::Starting);
  const std::vector<uint32_t> &watched = page.sharingRanks();
  tellOfTheUnwatched(control.rank(), hostRanks, watched);
  Watcher watcher(run.program, page, control, watched, run.timeout,
                  [&](const std::string &reason) { channels.abort(reason); });
  const bool oneHost = watched.size() == control.ranks();
  StepVote vote(
      control, [&] { return page.askedToStop(); },
      [&] { return page.of(control.rank()).use(); }, run.timeout);
  SignalListener listening(run.signals, [&](int signal) {
    if (signal == SIGUSR1)
      page.askToStop();
    else if (signal == SIGUSR2)
      handleSaveSignal(run, page,
                       [&] { oneHost ? page.askToSave() : vote.askToSave(); });
    else
      watcher.endForSignal(signal, run.signals->unsavedText());
  });
  auto fail = [&](const std::string &reason) { watcher.fail(reason); };
  CallWatch calls([&] { return channels.callsInFlight(); }, run.timeout, fail);
  const Communication communication = communicationOf(run.program);
  try {
    checkAgreement(control, agreedValuesOf(run), run.timeout);
    checkData(run, control, hostRanks);
    runRank(run, communication, control, device, channels,
            page.of(control.rank()),
            {.decide =
                 [&](uint64_t step) {
                   return oneHost ? decideOnPage(run.program, control.rank(),
                                                 page, step)
                                  : vote.decide();
                 },
             .askToStop = [&] { page.askToStop(); },
             .useOfRanks =
                 [&] {
                   return oneHost || vote.use().residentBytes == 0 ? page.use()
                                                                   : vote.use();
                 },
             // Before a checkpoint and after the last step, receive the votes
             // that are left before any other message.
             .afterSteps = [&] { vote.finish(); }},
            fail);
  } catch (const WaitError &error) {
    if (error.reason == WaitError::Reason::Aborted)
      watcher.endAfterAbort(error.what());
    fail(error.what());
  } catch (const std::exception &error) {
    fail(error.what());
  } catch (...) {
    fail(kUnknownError);
  }
}
