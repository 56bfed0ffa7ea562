// What an agent told while a command trained: said as ever, and kept for its report.
#ifndef STOWAGE_CLIENT_CLI_EVENT_LOG_H_
#define STOWAGE_CLIENT_CLI_EVENT_LOG_H_

#include <utility>
#include <vector>

#include "client/agent/agent_options.h"

namespace stowage {

// Not thread-safe.
class EventLog {
 public:
  EventLog() = default;
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Of agents with these options, which this outlives.
  void Watch(AgentOptions* options) {
    options->on_event = [this, say = std::move(options->on_event)](const AgentEvent& event) {
      if (muted_) return;
      events_.push_back(event);
      if (say) say(event);
    };
  }

  // While what happens is a test's doing, it is neither kept nor said.
  void Mute(bool muted) { muted_ = muted; }

  // Since the last call.
  std::vector<AgentEvent> Take() { return std::exchange(events_, {}); }

 private:
  bool muted_ = false;
  std::vector<AgentEvent> events_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_EVENT_LOG_H_
