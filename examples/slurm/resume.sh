#!/bin/bash
# Trains for longer than the time limit of a job. Before the time is up, the run
# writes a checkpoint, and this job asks Slurm to start it again. The next start
# continues from the checkpoint. A process for each rank, over TCP.
#
#   sbatch examples/slurm/resume.sh gpt2.chimera --data TEXT --steps 100000 \
#     --save gpt2.safetensors --log gpt2.log
#
# All arguments go to chimera-run. README.md in this folder says which of their
# files must lie in a folder that all hosts share. ../guides/jobs.md explains
# this script.
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
# The output of all starts, in one file; %j is the number of the job.
#SBATCH --output=chimera-%j.log
#SBATCH --open-mode=append
# Slurm may start this job again: if this script asks for it, or if a host fails.
#SBATCH --requeue
# Two minutes before the time is up, this script gets SIGUSR1. Give more time if
# a step and a checkpoint take longer.
#SBATCH --signal=B:USR1@120
set -eu

# The folder of checkpoints, which all hosts must share, and the steps between
# them. They are for failures: what a host had done since the last one is lost.
checkpoints=${CHECKPOINTS:-checkpoints-$SLURM_JOB_ID}
every=${CHECKPOINT_EVERY:-1000}

# The folder of chimera-run, unless your PATH has it:
# export PATH="$HOME/chimera/build/release/bin:$PATH"

# The ranks meet at the first host of the job. The port is one that no other job
# on that host uses; it follows from the number of the job.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# Runs a command of Slurm until it succeeds, at most five times: the controller
# may be busy.
retry() {
  for _ in 1 2 3 4 5; do
    "$@" && return
    sleep 2
  done
  return 1
}

# SIGUSR1 stops the ranks after their step, with a checkpoint.
is_time_up=
trap 'is_time_up=1; retry scancel --signal=USR1 "$SLURM_JOB_ID" || true' USR1

# One command for the first start and for all others. Slurm tells each task its
# rank.
srun --mpi=none --cpus-per-task="$SLURM_CPUS_PER_TASK" \
  chimera-run --transport tcp --threads "$SLURM_CPUS_PER_TASK" \
  --checkpoint "$checkpoints" --checkpoint-every "$every" \
  --resume "$checkpoints" "$@" &

# A signal ends `wait` early, with the status 128 + its number.
status=$((128 + $(kill -l USR1)))
while [ "$status" -eq $((128 + $(kill -l USR1))) ]; do
  status=0
  wait $! || status=$?
done

if [ -n "$is_time_up" ] && [ "$status" -eq 0 ]; then
  retry scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
