//===- CostInputs.cpp - From the IR to models and machines ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/describe/CostInputs.h"

#include "passes/describe/DescriptionReader.h"
#include "runtime/program/Printable.h"
#include "runtime/program/Saturated.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace chimera {

static std::vector<cost::BareLayer> bareLayersOf(ArrayAttr layers) {
  std::vector<cost::BareLayer> all;
  for (auto layer : layers.getAsRange<LayerAttr>()) {
    int64_t backward =
        layer.getBackward() > 0
            ? layer.getBackward()
            : program::saturatedSum({layer.getForward(), layer.getForward()});
    all.insert(
        all.end(), layer.getCount(),
        {layer.getForward(), backward - backward / 2, backward / 2,
         layer.getParameters(), layer.getStash(),
         layer.getWeightStash() > 0 ? layer.getWeightStash() : layer.getStash(),
         layer.getBoundary()});
  }
  // The last layer sends nothing, but the boundary of a stage must not be 0.
  int64_t &lastBoundary = all.back().boundaryBytes;
  lastBoundary = std::max<int64_t>(lastBoundary, 1);
  return all;
}

FailureOr<cost::Model> costModelOf(ModelOp op, program::Types types,
                                   program::OptimizerT optimizer) {
  if (ArrayAttr layers = op.getBareLayersAttr())
    return cost::Model(bareLayersOf(layers), types, std::move(optimizer));
  FailureOr<std::unique_ptr<program::PackageT>> model =
      modelOf(op, types.activations);
  if (failed(model))
    return failure();
  return cost::Model(std::move(*model), types, std::move(optimizer));
}

FailureOr<std::optional<cost::Model>> costModelOf(PipelineOp pipeline) {
  FailureOr<ModelOp> op = modelOpOf(pipeline);
  if (failed(op))
    return failure();
  if (!*op)
    return std::optional<cost::Model>();
  FailureOr<cost::Model> model =
      costModelOf(*op, typesOf(pipeline), optimizerOf(pipeline));
  if (failed(model))
    return failure();
  return std::optional(std::move(*model));
}

static schedule::MessageTime perMebibyte(int64_t alpha, int64_t beta) {
  return {alpha, beta, schedule::kMebibyte};
}

schedule::Link linkOf(LinkAttr link, int64_t perUnit) {
  auto times = [&](int64_t alpha, int64_t beta) {
    return perMebibyte(ticksOf(alpha, link.getPlaces(), perUnit),
                       ticksOf(beta, link.getPlaces(), perUnit));
  };
  return {times(link.getLatency(), link.timePerMib()),
          times(link.getSend(), link.sendTimePerMib()),
          times(link.getReceive(), link.receiveTimePerMib())};
}

/// Sets the times of all-reduce messages in `links`.
static void setAllReduce(LinkAttr attr, schedule::AllReduceAlgorithm algorithm,
                         schedule::LinkClass &links) {
  schedule::Link message = linkOf(attr);
  // The link states the time for which a message occupies its two ends. With
  // recursive doubling, this time is added once to an all-reduce. With other
  // algorithms, it is added to each message of the all-reduce.
  links.allReduceOverhead = perMebibyte(
      program::saturatedSum({message.send.alpha, message.receive.alpha}),
      program::saturatedSum({message.send.beta, message.receive.beta}));
  if (algorithm != schedule::AllReduceAlgorithm::Doubling) {
    schedule::MessageTime overhead = std::exchange(links.allReduceOverhead, {});
    message = {
        perMebibyte(program::saturatedSum({message.alpha, overhead.alpha}),
                    program::saturatedSum({message.beta, overhead.beta}))};
  }
  links.allReduceMessage = message;
}

schedule::Network networkOf(MachineOp op) {
  schedule::Network network;
  if (op.getAllReduceAlgorithm() == AllReduceAlgorithm::Doubling)
    network.allReduceAlgorithm = schedule::AllReduceAlgorithm::Doubling;
  network.blockingAllReduces = op.getBlockingAllReduce();
  if (LinkAttr link = op.getLinkAttr())
    network.link = linkOf(link);
  if (LinkAttr allReduce = op.getAllReduceAttr())
    setAllReduce(allReduce, network.allReduceAlgorithm, network);
  if (std::optional<uint64_t> devices = op.getNodeDevices()) {
    network.node = {.devices = static_cast<int32_t>(*devices),
                    .links = network,
                    .cores =
                        static_cast<int32_t>(op.getNodeCores().value_or(0))};
    schedule::LinkClass &links = network.node->links;
    if (LinkAttr link = op.getNodeLinkAttr())
      links = {.link = linkOf(link)};
    if (LinkAttr allReduce = op.getNodeAllReduceAttr())
      setAllReduce(allReduce, network.allReduceAlgorithm, links);
  }
  return network;
}

static FailureOr<cost::Profile> profileOf(MachineOp op, StringRef path) {
  std::string file = pathFrom(op, path);
  auto refuse = [&](const std::string &reason) {
    return op.emitOpError("expected a profile in ")
           << program::printable(file) << ": " << reason;
  };
  // Limit the size, because reading a device file may never end.
  uint64_t bytes = 0;
  constexpr uint64_t kMost = uint64_t{1} << 28;
  if (std::error_code code = llvm::sys::fs::file_size(file, bytes))
    return refuse(code.message());
  if (!llvm::sys::fs::is_regular_file(file) || bytes > kMost)
    return refuse("it is not a regular file, or is larger than 256 MiB");
  auto text = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
  if (!text)
    return refuse(text.getError().message());
  cost::Profile profile;
  std::string error =
      cost::readProfile(file, std::string_view((*text)->getBuffer()), profile);
  if (!error.empty())
    return op.emitOpError(program::printable(error));
  if (op.getNodeCores() && profile.hasSharedCores())
    op.emitWarning("expected profiles of ranks that share no cores with "
                   "node_cores, got ")
        << program::printable(file) << ", whose ranks had "
        << llvm::formatv("{0:f2}", *profile.coresPerRank) << " cores each for "
        << program::countWithNoun(static_cast<uint64_t>(profile.threads),
                                  "thread")
        << ": its times already include waits for cores, which would count "
           "twice; profile a program of fewer workers, whose ranks share no "
           "cores";
  return profile;
}

FailureOr<cost::Machine> costMachineOf(MachineOp op) {
  cost::Machine machine;
  if (ArrayAttr paths = op.getProfileAttr())
    for (auto path : paths.getAsValueRange<StringAttr>()) {
      FailureOr<cost::Profile> profile = profileOf(op, path);
      if (failed(profile))
        return failure();
      machine.profiles.push_back(std::move(*profile));
    }
  machine.devices = static_cast<int32_t>(op.getDevices());
  machine.memory = op.usableMemory();
  machine.speed = static_cast<int64_t>(op.getSpeed().value_or(1));
  machine.layerOverhead =
      static_cast<int64_t>(op.getLayerOverhead().value_or(0));
  machine.memoryBandwidth =
      static_cast<int64_t>(op.getMemoryBandwidth().value_or(0));
  machine.network = networkOf(op);
  return machine;
}

} // namespace chimera
