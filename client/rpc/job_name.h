// What a job calls itself towards servers (CallOptions::job).
#ifndef STOWAGE_CLIENT_RPC_JOB_NAME_H_
#define STOWAGE_CLIENT_RPC_JOB_NAME_H_

#include <string>

namespace stowage {

// The same for all ranks of a job: $STOWAGE_JOB, else what its launcher says in the environment ("slurm:4711"):
// Slurm, PBS, LSF, torchrun with a run id, PMIx or Open MPI. Steps of one Slurm job are one job: mpirun
// starts ranks in several. Else "host:pid", which tells processes apart and nothing more: eight ranks
// are then eight jobs to whoever counts jobs. At most 128 bytes, as the contract has it.
std::string JobName();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_JOB_NAME_H_
