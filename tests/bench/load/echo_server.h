// What a hit is held against: a bare unary call on the same transport, with messages of the same
// sizes and nothing between them.
#ifndef STOWAGE_TESTS_BENCH_LOAD_ECHO_SERVER_H_
#define STOWAGE_TESTS_BENCH_LOAD_ECHO_SERVER_H_

#include <cstddef>
#include <string>

namespace stowage {

// Answers every GetPlan on a free port of 127.0.0.1 with `reply_bytes` bytes. Prints
// "listening on ADDRESS" and never returns.
[[noreturn]] void RunEchoServer(size_t reply_bytes);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_ECHO_SERVER_H_
