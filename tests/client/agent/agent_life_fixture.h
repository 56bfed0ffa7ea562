// An agent of a model that only pretends to train, what it tells, and what a service keeps of it.
#ifndef STOWAGE_TESTS_CLIENT_AGENT_AGENT_LIFE_FIXTURE_H_
#define STOWAGE_TESTS_CLIENT_AGENT_AGENT_LIFE_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/agent/agent.h"
#include "solvers/schedule/instance.h"
#include "tests/client/agent/fake_training.h"

namespace stowage {

class AgentLifeTest : public ::testing::Test {
 protected:
  AgentLifeTest() {
    options_.profile.meter = &world_.meter;
    options_.report_after = 0;
    options_.drift.window = 4;
    options_.on_event = [this](const AgentEvent& event) {
      kinds_.push_back(KindOf(event));
      lines_.push_back(ToString(event));
      events_.push_back(event);
    };
  }

  std::unique_ptr<Agent> MakeAgent() {
    return std::make_unique<Agent>(std::make_unique<FakeModel>(&world_), service_.Connect(),
                                   options_);
  }

  template <class Event>
  const Event& Last() const {
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      if (const Event* found = std::get_if<Event>(&*event)) return *found;
    }
    throw std::logic_error("there was no such event");
  }

  void StepOften(Agent* agent, int steps, int64_t n = 4) {
    for (int i = 0; i < steps; ++i) {
      const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(n));
      ASSERT_TRUE(report.ok()) << report.status();
    }
  }

  Bytes StoreAll(int64_t n) const {
    return Instance(FakeProfile(FakeBatch(n), CostSource::kMeasured).problem).store_all()->peak;
  }

  FakeWorld world_;
  FakeService service_;
  AgentOptions options_;
  std::vector<std::string> kinds_, lines_;
  std::vector<AgentEvent> events_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_AGENT_AGENT_LIFE_FIXTURE_H_
