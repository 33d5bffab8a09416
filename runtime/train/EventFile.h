//===- EventFile.h - A file that TensorBoard reads --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A writer of TensorBoard's event files. It needs three messages with one or
// two fields each, and a checksum. That is less code than a dependency on
// protobuf would take.
//
// A file is a list of records. A record has the length of its data (8 bytes,
// little-endian), the checksum of these 8 bytes, the data, and the checksum of
// the data. The data is a message Event in the encoding of protocol buffers:
//
//   Event       wall_time = 1 (double), step = 2 (int64),
//               and one of: file_version = 3 (string), summary = 5 (Summary),
//               session_log = 7 (SessionLog)
//   Summary     value = 1 (Value, repeated)
//   Value       tag = 1 (string), simple_value = 2 (float)
//   SessionLog  status = 1 (1: START)
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_EVENTFILE_H
#define CHIMERA_RUNTIME_TRAIN_EVENTFILE_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace chimera::runtime {

/// The checksum of a record: the CRC-32C of `bytes`, rotated by 15 bits to the
/// right, plus 0xa282ead8.
uint32_t maskedCrc32c(std::string_view bytes);

/// A point of a curve.
struct Scalar {
  const char *tag; ///< the name of the curve
  double value;    ///< written as a float
};

/// The event file of one run. Each run makes a new file in its folder.
/// TensorBoard reads all files of a folder as one, in the order of their names.
/// So a run that resumes continues the curves.
class EventFile {
public:
  /// Makes a file in `folder`, and `folder` if it does not exist. The file
  /// begins with the event that says that steps from `firstStep` on follow.
  /// TensorBoard then drops the points of these steps that earlier files have:
  /// a run that crashed had more steps than its last checkpoint. Throws
  /// std::runtime_error if the file cannot be written, or if another run is
  /// writing to the folder.
  EventFile(const std::string &folder, uint64_t firstStep);
  ~EventFile();
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;

  /// Appends points of one step. TensorBoard sees them at once. Throws
  /// std::runtime_error if they cannot be written.
  void append(uint64_t step, std::span<const Scalar> scalars);
  /// Must be the last call. Throws std::runtime_error if the file is not on the
  /// disk.
  void complete();

private:
  explicit EventFile(const std::string &folder)
      : folder(folder), path(folder) {}
  void lockFolder();
  void open();
  void write(const std::string &event);
  [[noreturn]] void fail() const;

  std::string folder, path;
  int lock = -1, descriptor = -1;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_EVENTFILE_H
