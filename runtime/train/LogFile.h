//===- LogFile.h - A log file with a temporary name -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_LOGFILE_H
#define CHIMERA_RUNTIME_TRAIN_LOGFILE_H

#include <functional>
#include <string>
#include <string_view>

namespace chimera::runtime {

/// The temporary name of the log `file`: FILE.part, in the folder to which
/// symbolic links of `file` lead. If `file` is not a regular file but, for
/// example, a pipe, the log is written to it directly.
std::string temporaryName(const std::string &file);

/// A log that is written to temporaryName(FILE) and gets its final name when it
/// is complete. Old logs are never lost: a file that an earlier run left under
/// either name is first renamed to FILE.1, or to FILE.2 if that exists, and so
/// on. A log may instead continue such a file.
class LogFile {
public:
  /// Whether a line of an existing log, without its line break, stays.
  using Keeps = std::function<bool(std::string_view)>;

  /// If `keeps` is not empty and an earlier run left a log, continues this log
  /// after its last line before the first line that does not stay. Throws
  /// std::runtime_error if the file cannot be written, or if another process is
  /// writing it.
  explicit LogFile(const std::string &file, const Keeps &keeps = {});
  /// An incomplete log keeps its temporary name.
  ~LogFile();
  LogFile(const LogFile &) = delete;
  LogFile &operator=(const LogFile &) = delete;

  /// Appends text. Other processes that read the file see it at once. Throws
  /// std::runtime_error if it cannot be written.
  void append(std::string_view text);
  /// Gives the log its final name. Must be the last call. Throws
  /// std::runtime_error if that fails.
  void complete();

private:
  LogFile(std::string target, std::string part);
  void cutAfterKept(const Keeps &keeps) const;
  bool grows() const { return part != target; }
  bool isStillNamed() const;
  bool isEmpty() const;
  /// If a file with the name `file` exists, renames it to TARGET.N, where
  /// TARGET is the final name of the log and N the first free number.
  void number(const std::string &file) const;
  /// Throws an error with errno's message.
  [[noreturn]] void fail() const;

  std::string target, part;
  int descriptor = -1;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_LOGFILE_H
