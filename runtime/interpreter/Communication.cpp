//===- Communication.cpp - All communication of a program -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Communication.h"

#include <algorithm>
#include <set>

using namespace chimera;
using namespace chimera::runtime;

Communication
chimera::runtime::communicationOf(const program::ProgramT &program) {
  auto workers = static_cast<uint32_t>(program.workers.size());
  Communication all;
  all.model = program.message_model;
  for (const auto &communicator : program.communicators) {
    ReduceGroup &group = all.groups.emplace_back();
    group.id = static_cast<uint32_t>(all.groups.size() - 1);
    for (uint32_t copy = 0; copy < program.data_parallel; ++copy)
      for (const program::Contribution &summand : communicator->contributions)
        group.contributors.push_back(copy * workers + summand.worker());
  }
  for (uint32_t worker = 0; worker < workers; ++worker)
    for (const program::Instruction &post :
         program.workers[worker]->instructions)
      if (post.opcode() == program::Opcode::PostSend)
        all.pairs.push_back({worker, post.target()});
  std::ranges::sort(all.pairs);
  const auto repeated = std::ranges::unique(all.pairs);
  all.pairs.erase(repeated.begin(), repeated.end());
  size_t ofOneCopy = all.pairs.size();
  for (uint32_t copy = 1; copy < program.data_parallel; ++copy)
    for (size_t i = 0; i < ofOneCopy; ++i)
      all.pairs.push_back({copy * workers + all.pairs[i].from,
                           copy * workers + all.pairs[i].to});
  return all;
}

std::vector<uint32_t> chimera::runtime::peersOf(const Communication &all,
                                                uint32_t rank) {
  std::set<uint32_t> peers;
  for (const Communication::Pair &pair : all.pairs)
    if (pair.from == rank || pair.to == rank)
      peers.insert({pair.from, pair.to});
  for (const ReduceGroup &group : all.groups)
    if (std::ranges::count(group.contributors, rank))
      peers.insert(group.contributors.begin(), group.contributors.end());
  peers.erase(rank);
  return {peers.begin(), peers.end()};
}
