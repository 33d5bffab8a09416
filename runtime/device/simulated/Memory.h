//===- Memory.h - Memory that the host cannot access ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory of one simulated device. Its addresses are not valid for a
// processor, so a host that dereferences one faults immediately. The bytes are
// stored elsewhere, and only the simulation can find them. For every byte, the
// memory records whether it was ever written, and which operations used it
// last.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_SIMULATED_MEMORY_H
#define CHIMERA_RUNTIME_DEVICE_SIMULATED_MEMORY_H

#include "runtime/device/Device.h"
#include "runtime/device/simulated/Clock.h"

#include <map>

namespace chimera::runtime::simulated {

/// Identifies an operation in reports, by its instruction and a name.
struct Label {
  uint32_t rank = 0;
  uint64_t step = 0;
  uint32_t instruction = 0;
  const char *what = ""; ///< a string literal, for example "the receive"
};

/// Two uses of the same memory, at least one of them a write, neither of which
/// happened before the other; or a read of memory that nothing has written.
struct Violation {
  Label label;
  Access::Kind kind; ///< how the later use accessed the memory
  /// `other` is the earlier use. There is none if nothing has written the
  /// memory.
  bool hasOther = false;
  Label other = {};
  bool otherWrites = false;
  uint64_t bytes = 0;
};

class Memory {
public:
  explicit Memory(uint32_t rank);

  /// Allocates memory with garbage. The address is a multiple of `alignment`
  /// but not of 2 * alignment, so that a program cannot rely on more.
  std::byte *allocate(uint64_t bytes, uint64_t alignment);
  void free(const std::byte *address);

  /// The address at which the simulation stores `bytes`. Throws
  /// std::logic_error unless all of them are in allocated memory.
  std::byte *find(ConstBytes bytes);

  /// Records a use of memory by the operation with the stamp `stamp`. `clock`
  /// has the operations that happened before this operation. Adds violations to
  /// the list.
  void recordUse(const Access &access, Stamp stamp, const Clock &clock,
                 const Label &label, std::vector<Violation> &violations);
  /// Fills memory with garbage and marks it as never written.
  void poison(Bytes bytes);
  /// Marks the bytes as written by the operation of their last recordUse.
  void setWritten(ConstBytes bytes);

private:
  struct Use {
    Stamp stamp;
    Label label;
  };
  /// A range of bytes whose last uses are the same.
  struct Cell {
    uint64_t end = 0;
    bool isWritten = false;
    std::vector<Use> writes; ///< the last write; empty if there is none
    /// The reads since the last write. None of them happened before another.
    std::vector<Use> reads;
  };
  struct Allocation {
    uint64_t size;
    Block bytes;
    std::map<uint64_t, Cell> cells; ///< by their first byte; cover all bytes
  };

  Allocation &allocationOf(ConstBytes bytes, uint64_t &offset);
  template <typename Visit> void eachCell(ConstBytes bytes, Visit visit);

  const uint64_t base;
  uint64_t next = 0; ///< where the next allocation may begin
  std::map<uint64_t, Allocation> allocations; ///< by address minus base
};

} // namespace chimera::runtime::simulated

#endif // CHIMERA_RUNTIME_DEVICE_SIMULATED_MEMORY_H
