#include "server/service/flight_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stowage {

FlightTable::Key FlightTable::KeyOf(const Flight& flight) {
  std::optional<int64_t> budget;
  if (flight.budget) budget = flight.budget->value();
  return Key(flight.problem->key.digest, flight.asked, budget);
}

FlightTable::Joined FlightTable::Join(const std::shared_ptr<PlanCall>& call) {
  auto flight = std::make_shared<Flight>(call->search_until());
  flight->problem = call->problem;
  flight->asked = call->asked;
  flight->batches = call->batches;
  flight->budget = call->budget.get();
  flight->leader = call->id;
  flight->trace = call->trace;
  flight->latest_ = PlanCall::Clock::now() + longest_;

  std::lock_guard<std::mutex> lock(mutex_);
  if (call->left_) return {};
  bool fresh = false;
  if (call->asked != Asked::kBatches) {
    const auto [slot, added] = listed_.try_emplace(KeyOf(*flight), flight);
    fresh = added;
    if (!added && *slot->second->problem->canonical == *call->problem->canonical) {
      call->problem->canonical = slot->second->problem->canonical;
      call->flight_ = slot->second;
      slot->second->stop.ExtendDeadline(std::min(call->search_until(), slot->second->latest_));
      call->joined = call->trace.Start("solve.joined");
      const TraceScope& leader = slot->second->trace;
      if (leader.tracer != nullptr) call->joined.Link(leader.context);
      slot->second->calls_.push_back(call);
      return {slot->second, false};
    }
  }
  // Equal digests over different canonical bytes fly apart: the second one unlisted, for its caller
  // alone.
  flight->listed_ = fresh;
  flight->id = next_id_++;
  flight->calls_.push_back(call);
  call->flight_ = flight;
  all_.emplace(flight->id, flight);
  return {flight, true};
}

bool FlightTable::Flies(const PlanCall& call) const {
  std::optional<int64_t> budget;
  if (const std::optional<Bytes> bytes = call.budget.get()) budget = bytes->value();
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = listed_.find(Key(call.problem->key.digest, call.asked, budget));
  return found != listed_.end() && *found->second->problem->canonical == *call.problem->canonical;
}

std::shared_ptr<Flight> FlightTable::Leave(const std::shared_ptr<PlanCall>& call) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Flight> flight = LeaveLocked(call);
  if (flight) StopLocked(flight);
  return flight;
}

std::shared_ptr<Flight> FlightTable::Desert(const std::shared_ptr<PlanCall>& call) {
  std::lock_guard<std::mutex> lock(mutex_);
  return LeaveLocked(call);
}

void FlightTable::EndDeserted(const std::shared_ptr<Flight>& flight) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (flight->calls_.empty()) StopLocked(flight);
}

void FlightTable::EndAllDeserted() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto next = all_.begin(); next != all_.end();) {
    const std::shared_ptr<Flight> flight = (next++)->second;
    if (flight->calls_.empty()) StopLocked(flight);
  }
}

std::shared_ptr<Flight> FlightTable::LeaveLocked(const std::shared_ptr<PlanCall>& call) {
  call->left_ = true;
  std::shared_ptr<Flight> flight = std::exchange(call->flight_, nullptr);
  if (!flight) return nullptr;
  auto& calls = flight->calls_;
  calls.erase(std::remove(calls.begin(), calls.end(), call), calls.end());
  return calls.empty() ? flight : nullptr;
}

void FlightTable::StopLocked(const std::shared_ptr<Flight>& flight) {
  flight->stop.RequestStop();
  LandLocked(flight);
}

std::vector<std::shared_ptr<PlanCall>> FlightTable::Watchers(const Flight& flight) const {
  std::vector<std::shared_ptr<PlanCall>> watchers;
  std::lock_guard<std::mutex> lock(mutex_);
  std::copy_if(flight.calls_.begin(), flight.calls_.end(), std::back_inserter(watchers),
               [](const auto& call) { return call->changed != nullptr; });
  return watchers;
}

std::shared_ptr<Flight> FlightTable::FlightOf(const PlanCall& call) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return call.flight_;
}

std::vector<std::shared_ptr<PlanCall>> FlightTable::Land(const std::shared_ptr<Flight>& flight) {
  std::lock_guard<std::mutex> lock(mutex_);
  return LandLocked(flight);
}

std::vector<std::shared_ptr<PlanCall>> FlightTable::LandLate(
    const std::shared_ptr<Flight>& flight) {
  const auto now = PlanCall::Clock::now();
  std::lock_guard<std::mutex> lock(mutex_);
  if (all_.count(flight->id) == 0) return {};
  if (std::exchange(flight->listed_, false)) listed_.erase(KeyOf(*flight));
  auto& calls = flight->calls_;
  const auto stays = [now](const auto& call) { return call->search_until() <= now; };
  const auto going = std::stable_partition(calls.begin(), calls.end(), stays);
  std::vector<std::shared_ptr<PlanCall>> gone(going, calls.end());
  calls.erase(going, calls.end());
  for (const auto& call : gone) call->flight_ = nullptr;
  if (calls.empty()) all_.erase(flight->id);
  return gone;
}

std::vector<std::shared_ptr<PlanCall>> FlightTable::LandAll() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<PlanCall>> waiting;
  while (!all_.empty()) {
    const std::shared_ptr<Flight> flight = all_.begin()->second;
    flight->stop.RequestStop();
    for (auto& call : LandLocked(flight)) waiting.push_back(std::move(call));
  }
  return waiting;
}

std::vector<std::shared_ptr<PlanCall>> FlightTable::LandLocked(
    const std::shared_ptr<Flight>& flight) {
  if (all_.erase(flight->id) == 0) return {};
  if (flight->listed_) listed_.erase(KeyOf(*flight));
  for (const auto& call : flight->calls_) call->flight_ = nullptr;
  return std::exchange(flight->calls_, {});
}

}  // namespace stowage
