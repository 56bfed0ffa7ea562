// Which of several servers is asked for a key: the one with the highest score, then the next. Every
// process comes to the same order, whatever the order of its list. Of R servers each is the first for a
// share of 1/R of the keys, and one that comes or goes moves no keys but its own share. Internal to
// client/rpc. Pure functions.
#ifndef STOWAGE_CLIENT_RPC_RENDEZVOUS_H_
#define STOWAGE_CLIENT_RPC_RENDEZVOUS_H_

#include <cstdint>
#include <string>

#include "solvers/model/canonical.h"

namespace stowage {

// Never changes: programs of several versions ask the same servers. O(length of the address).
uint64_t RendezvousScore(const PlanKey& key, const std::string& address);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_RENDEZVOUS_H_
