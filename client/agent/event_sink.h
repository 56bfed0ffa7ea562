// Counts events and hands them on.
#ifndef STOWAGE_CLIENT_AGENT_EVENT_SINK_H_
#define STOWAGE_CLIENT_AGENT_EVENT_SINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "client/agent/agent_event.h"

namespace stowage {

// How many there were of each type of event.
class EventCounts {
 public:
  template <class Event>
  int64_t of() const {
    return counts_[AgentEvent(Event()).index()];
  }
  void Count(const AgentEvent& event) { ++counts_[event.index()]; }

 private:
  std::array<int64_t, std::variant_size_v<AgentEvent>> counts_{};
};

// Not thread-safe.
class EventSink {
 public:
  explicit EventSink(EventCallback callback) : callback_(std::move(callback)) {}

  void Emit(const AgentEvent& event) {
    counts_.Count(event);
    if (callback_) callback_(event);
  }
  const EventCounts& counts() const { return counts_; }

 private:
  EventCallback callback_;
  EventCounts counts_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_EVENT_SINK_H_
