//===- HangingMpi.cpp - MPI whose calls can be made to hang ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library that is loaded before MPI (LD_PRELOAD). While the file
// CHIMERA_HOLD_FILE exists, the MPI call that CHIMERA_HOLD_CALL names does not
// return. All other calls go to MPI.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <mpi.h>
#include <string_view>
#include <unistd.h>

static void holdIfAsked(std::string_view call) {
  const char *held = std::getenv("CHIMERA_HOLD_CALL");
  const char *file = std::getenv("CHIMERA_HOLD_FILE");
  if (held && file && call == held)
    while (access(file, F_OK) == 0)
      usleep(10000);
}

extern "C" {
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  holdIfAsked("MPI_Test");
  return PMPI_Test(request, flag, status);
}
int MPI_Comm_dup(MPI_Comm communicator, MPI_Comm *copy) {
  holdIfAsked("MPI_Comm_dup");
  return PMPI_Comm_dup(communicator, copy);
}
int MPI_Comm_create_group(MPI_Comm communicator, MPI_Group group, int tag,
                          MPI_Comm *made) {
  holdIfAsked("MPI_Comm_create_group");
  return PMPI_Comm_create_group(communicator, group, tag, made);
}
int MPI_Comm_free(MPI_Comm *communicator) {
  holdIfAsked("MPI_Comm_free");
  return PMPI_Comm_free(communicator);
}
}
