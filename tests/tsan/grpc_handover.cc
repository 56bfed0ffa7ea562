// Tells ThreadSanitizer where gRPC 1.51 hands work from thread to thread without a lock.
#include <grpc/grpc.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>

#include "absl/status/status.h"
#include "tests/tsan/next_function.h"

using stowage::testing::MangledAbseil;
using stowage::testing::NextFunction;

// What gRPC does to memory inside memcpy, recv and their like is its own business, as what it does
// elsewhere is. That it locks, starts threads and talks over sockets is still seen.
extern "C" const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }

// A batch is begun before it is over.
extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag,
                                      void* reserved) {
  static const auto next = NextFunction<decltype(&grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_release(tag);
  return next(call, ops, count, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static const auto next =
      NextFunction<decltype(&grpc_completion_queue_next)>("grpc_completion_queue_next");
  const grpc_event event = next(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static const auto next =
      NextFunction<decltype(&grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  const grpc_event event = next(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // extern "C"

struct grpc_closure;

// As gRPC has them, as far as they are called here.
namespace grpc_core {

class MultiProducerSingleConsumerQueue {
 public:
  struct Node;
  bool Push(Node* node);
  Node* PopAndCheckEnd(bool* empty);
};

class CallCombiner {
 public:
  void Start(grpc_closure* closure, absl::Status error, const char* file, int line,
             const char* reason);
  void Stop(const char* file, int line, const char* reason);
};

class Combiner {
 public:
  void Run(grpc_closure* closure, absl::Status error);
};

bool MultiProducerSingleConsumerQueue::Push(Node* node) {
  static const auto next = NextFunction<bool (*)(MultiProducerSingleConsumerQueue*, Node*)>(
      "_ZN9grpc_core32MultiProducerSingleConsumerQueue4PushEPNS0_4NodeE");
  __tsan_release(this);
  return next(this, node);
}

MultiProducerSingleConsumerQueue::Node* MultiProducerSingleConsumerQueue::PopAndCheckEnd(
    bool* empty) {
  static const auto next = NextFunction<Node* (*)(MultiProducerSingleConsumerQueue*, bool*)>(
      "_ZN9grpc_core32MultiProducerSingleConsumerQueue14PopAndCheckEndEPb");
  Node* const node = next(this, empty);
  __tsan_acquire(this);
  return node;
}

// Of what is in a combiner one runs after the other, on whichever thread.
void CallCombiner::Start(grpc_closure* closure, absl::Status error, const char* file, int line,
                         const char* reason) {
  static const auto next = NextFunction<void (*)(CallCombiner*, grpc_closure*, absl::Status,
                                                 const char*, int, const char*)>(
      "_ZN9grpc_core12CallCombiner5StartEP12grpc_closureN" + MangledAbseil() + "6StatusEPKciS7_");
  __tsan_release(this);
  __tsan_acquire(this);
  next(this, closure, error, file, line, reason);
}

void CallCombiner::Stop(const char* file, int line, const char* reason) {
  static const auto next = NextFunction<void (*)(CallCombiner*, const char*, int, const char*)>(
      "_ZN9grpc_core12CallCombiner4StopEPKciS2_");
  __tsan_release(this);
  __tsan_acquire(this);
  next(this, file, line, reason);
}

void Combiner::Run(grpc_closure* closure, absl::Status error) {
  static const auto next = NextFunction<void (*)(Combiner*, grpc_closure*, absl::Status)>(
      "_ZN9grpc_core8Combiner3RunEP12grpc_closureN" + MangledAbseil() + "6StatusE");
  __tsan_release(this);
  __tsan_acquire(this);
  next(this, closure, error);
}

}  // namespace grpc_core

// The last of a call's reactions ends it, and gRPC itself may have counted it.
void grpc::internal::ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  static const auto next = NextFunction<void (*)(ServerCallbackCall*, bool)>(
      "_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  __tsan_acquire(&callbacks_outstanding_);
  next(this, inline_ondone);
}
