#!/bin/bash
# Trains a compiled program under Slurm, a process for each rank, over TCP. No
# host needs MPI.
#
#   sbatch examples/slurm/tcp.sh gpt2.chimera --data TEXT --steps 300 \
#     --save gpt2.safetensors
#
# All arguments go to chimera-run. README.md in this folder says which of their
# files must lie in a folder that all hosts share.
#
# Change these lines, or give such options to sbatch. Nodes times tasks are the
# program's ranks; CPUs are the threads that each rank computes with.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
# Your cluster may want a partition or an account (delete one # to use a line):
##SBATCH --partition=PARTITION
##SBATCH --account=ACCOUNT
# The output of the ranks; %j is the number of the job.
#SBATCH --output=chimera-%j.log
# Five minutes before the time is up the run stops after a step and saves.
#SBATCH --signal=USR1@300
set -eu

# The folder of chimera-run, unless your PATH has it:
# export PATH="$HOME/chimera/build/release/bin:$PATH"

# The ranks meet at the first host of the job. The port is one that no other job
# on that host uses; it follows from the number of the job.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# Slurm tells each task its rank.
exec srun --mpi=none --cpus-per-task="$SLURM_CPUS_PER_TASK" \
  chimera-run --transport tcp --threads "$SLURM_CPUS_PER_TASK" "$@"
