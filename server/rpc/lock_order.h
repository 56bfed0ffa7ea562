// Whether Abseil checks in which order locks are taken.
#ifndef STOWAGE_SERVER_RPC_LOCK_ORDER_H_
#define STOWAGE_SERVER_RPC_LOCK_ORDER_H_

namespace stowage {

// It does not, from now on, in this process. Where Abseil was built with assertions, as Debian's is, it
// keeps a graph of all mutexes that gRPC has taken while it held others: each lock of each thread waits
// for the one lock of that graph, the graph grows for as long as there are new pairs, and an order that
// Abseil does not like ends the process.
void LeaveLockOrderUnchecked();

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_LOCK_ORDER_H_
