// What a job calls itself towards servers (CallOptions::job).
#ifndef STOWAGE_CLIENT_RPC_JOB_NAME_H_
#define STOWAGE_CLIENT_RPC_JOB_NAME_H_

#include <string>

namespace stowage {

// $STOWAGE_JOB, which a launcher sets alike for all ranks and restarts; else "host:pid", which tells
// processes apart and nothing more. At most 128 bytes, as the contract has it.
std::string JobName();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_JOB_NAME_H_
