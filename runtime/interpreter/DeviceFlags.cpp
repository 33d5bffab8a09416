//===- DeviceFlags.cpp - Flags that a device sets -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/DeviceFlags.h"

#include "runtime/model/Stage.h"

#include <cstring>

using namespace chimera::runtime;

Bytes DeviceFlags::add(const Key &key, Block block, Queue &queue) {
  const Bytes flag(block.get(), kFlagBytes);
  queue.zero(flag);
  flags[key] = std::move(block);
  return flag;
}

Bytes DeviceFlags::of(const Key &key) const {
  const auto flag = flags.find(key);
  return flag == flags.end() ? Bytes() : Bytes(flag->second.get(), kFlagBytes);
}

void DeviceFlags::reserveCopies(Device &device, size_t steps) {
  for (size_t i = 0; i < steps && !flags.empty(); ++i)
    copies.push_back(device.allocateHost(flags.size() * kFlagBytes));
}

void DeviceFlags::copy(Queue &queue, uint64_t step) {
  if (flags.empty())
    return;
  std::byte *host = copies[step % copies.size()].get();
  for (const auto &[key, flag] : flags) {
    queue.readBack({flag.get(), kFlagBytes}, {host, kFlagBytes});
    host += kFlagBytes;
  }
}

std::vector<std::pair<DeviceFlags::Key, int32_t>>
DeviceFlags::valuesIn(uint64_t step) const {
  std::vector<std::pair<Key, int32_t>> values;
  if (flags.empty())
    return values;
  const std::byte *host = copies[step % copies.size()].get();
  for (const auto &[key, flag] : flags) {
    int32_t value = 0;
    std::memcpy(&value, host, sizeof value);
    host += kFlagBytes;
    values.emplace_back(key, value);
  }
  return values;
}
