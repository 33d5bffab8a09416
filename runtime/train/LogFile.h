//===- LogFile.h - A file that grows and is then named ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_LOGFILE_H
#define CHIMERA_RUNTIME_TRAIN_LOGFILE_H

#include <string>
#include <string_view>

namespace chimera::runtime {

/// The file in which the log `file` grows: FILE.part, in the folder to which
/// the links of `file` lead. If `file` is not a regular file but, for example,
/// a pipe, the log is written to it directly.
std::string partOf(const std::string &file);

/// A log that grows in partOf(FILE) and gets its name when it is complete. No
/// log is lost: one that a run has left under either name becomes FILE.1 or, if
/// there is that, FILE.2, and so on, before the name is taken.
class LogFile {
public:
  /// Throws std::runtime_error if the file cannot be written, or another
  /// process is writing it.
  explicit LogFile(const std::string &file);
  /// An incomplete log keeps the name that it has.
  ~LogFile();
  LogFile(const LogFile &) = delete;
  LogFile &operator=(const LogFile &) = delete;

  /// Others see the text at once. Throws std::runtime_error if it cannot be
  /// written.
  void append(std::string_view text);
  /// Gives the log its name; to be called once, last. Throws std::runtime_error
  /// if that fails.
  void complete();

private:
  LogFile(std::string target, std::string part);
  bool grows() const { return part != target; }
  bool isStillNamed() const;
  bool isEmpty() const;
  /// Gives the file of this name, if there is one, the next free number.
  void number(const std::string &file) const;
  /// Throws what errno says.
  [[noreturn]] void fail() const;

  std::string target, part;
  int descriptor = -1;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_LOGFILE_H
