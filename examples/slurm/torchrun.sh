#!/bin/bash
# Trains a compiled program under Slurm, by one torchrun on each host, which
# starts the ranks of its host. They talk over TCP.
#
#   sbatch examples/slurm/torchrun.sh gpt2.chimera --data TEXT --steps 300 \
#     --save gpt2.safetensors
#
# All arguments go to chimera-run. README.md in this folder says which of their
# files must lie in a folder that all hosts share.
#
# Change these lines, or give such options to sbatch. A host has one task, its
# torchrun.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
# Your cluster may want a partition or an account (delete one # to use a line):
##SBATCH --partition=PARTITION
##SBATCH --account=ACCOUNT
# The output of the ranks; %j is the number of the job.
#SBATCH --output=chimera-%j.log
set -eu

# Ranks on each host: nodes times these are the program's ranks.
ranks_on_host=${RANKS_ON_HOST:-2}

# The folders of chimera-run and of torchrun, unless your PATH has them:
# export PATH="$HOME/chimera/build/release/bin:$HOME/venv/bin:$PATH"

# The torchruns meet at the first host of the job. The port is one that no other
# job on that host uses; it follows from the number of the job.
host=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))

exec srun --mpi=none --cpus-per-task="$SLURM_CPUS_PER_TASK" \
  torchrun --no-python --nnodes "$SLURM_JOB_NUM_NODES" \
  --nproc-per-node "$ranks_on_host" --rdzv-id "$SLURM_JOB_ID" \
  --rdzv-backend c10d --rdzv-endpoint "$host:$port" \
  -- chimera-run --transport tcp \
  --threads "$((SLURM_CPUS_PER_TASK / ranks_on_host))" "$@"
