#!/usr/bin/env bash
# Open MPI's all-reduce of four ranks adds pairs of ranks, (r0 + r1) + (r2 + r3),
# at every size of the message.
#
# Versions: Open MPI 4.1.4 of Debian 12 (openmpi-bin, libopenmpi-dev), four ranks on
#   one machine.
# Behaviour: MPI recommends, but does not demand, one order of a sum. Here it is
#   always the sum of pairs, and never the order in which ranks are counted,
#   ((r0 + r1) + r2) + r3.
# Seen on 2026-11-27 (float32, uniform in -0.5 to 0.5):
#         4 elements: 4 are sums of pairs, 0.0 % differ from rank order
#      4096 elements: 4096 are sums of pairs, 10.2 % differ from rank order
#   4194304 elements: 4194304 are sums of pairs, 9.8 % differ from rank order
#   The sizes between them are alike.
# Why it matters: Two programs that train the same model with the same data differ
#   in one sum of ten if one adds in rank order and the other one leaves sums
#   to MPI. The difference is rounding and not an error.
# What chimera does: Its own all-reduce adds in rank order on every transport, with
#   equal bits. `--all-reduce transport` leaves the sum to MPI, outside of this
#   promise.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for package in openmpi-bin libopenmpi-dev; do
  [[ $(dpkg-query -W -f='${Version}' $package) == 4.1.4-* ]] ||
    { echo "needs $package=4.1.4*: apt-get install it" >&2; exit 2; }
done
cat >"$work/sum.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { most = 1 << 22 };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, changed = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *in[4], *sum = malloc(most * sizeof(float));
  srand(1); // alike on all ranks
  for (int r = 0; r < 4; r++) {
    in[r] = malloc(most * sizeof(float));
    for (int i = 0; i < most; i++)
      in[r][i] = (float)rand() / RAND_MAX - 0.5f;
  }
  for (int size = 1; size <= most; size *= 4) {
    MPI_Allreduce(in[rank], sum, size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    int pairs = 0, differ = 0;
    for (int i = 0; i < size; i++) {
      float a = in[0][i], b = in[1][i], c = in[2][i], d = in[3][i];
      pairs += sum[i] == (a + b) + (c + d);
      differ += sum[i] != ((a + b) + c) + d;
    }
    if (rank == 0)
      printf("%7d elements: %d are sums of pairs, %.1f %% differ from rank order\n",
             size, pairs, 100.0 * differ / size);
    changed |= pairs != size || (size >= 4096 && differ < size / 20);
  }
  MPI_Finalize();
  return changed;
}
C
mpicc -O1 -std=c11 -o "$work/sum" "$work/sum.c"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun --oversubscribe -np 4 "$work/sum" 2>"$work/errors" ||
  { echo "changed: sums are in another order" >&2; cat "$work/errors"; exit 1; }
