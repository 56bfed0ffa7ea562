#include "client/torch/offload/device_use.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace stowage {
namespace {

using Key = std::pair<c10::DeviceType, c10::DeviceIndex>;

Key KeyOf(c10::Device device) { return {device.type(), device.index()}; }

struct Users {
  std::set<std::thread::id> threads;
  int64_t begun = 0;  // outermost steps
};

thread_local const DeviceUse* innermost_use = nullptr;

// Never destroyed: threads may step to the end.
std::mutex& Mutex() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}

Users& UsersOf(c10::Device device) {
  static auto* const users = new std::map<Key, Users>();
  return (*users)[KeyOf(device)];
}

// What a backward that makes no tensor needs.
struct Probe {
  at::Tensor source;
  at::Tensor gradient;
};

// Made once: a profile would count it.
Probe ProbeOf(c10::Device device) {
  static auto* const probes = new std::map<Key, Probe>();
  const std::lock_guard<std::mutex> lock(Mutex());
  Probe& probe = (*probes)[KeyOf(device)];
  if (!probe.source.defined()) {
    probe.gradient = at::ones({1}, device);
    probe.source = at::zeros({1}, device).requires_grad_();
  }
  return probe;
}

}  // namespace

void WaitFor(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

void WaitForBackwards(c10::Device device) {
  if (device.is_cpu()) return;  // its backwards run on the caller's thread
  const at::AutoGradMode grad_mode(true);
  const Probe probe = ProbeOf(device);
  // That thread takes up one backward after the other.
  torch::autograd::grad({probe.source.view({1})}, {probe.source}, {probe.gradient});
}

DeviceUse::DeviceUse(c10::Device device)
    : device_(device), outer_(innermost_use), counts_(!IsWithinAnother()) {
  innermost_use = this;
  if (!counts_) return;
  const std::lock_guard<std::mutex> lock(Mutex());
  Users& users = UsersOf(device_);
  users.threads.insert(std::this_thread::get_id());
  ++users.begun;
}

DeviceUse::~DeviceUse() {
  innermost_use = outer_;
  if (!counts_) return;
  const std::lock_guard<std::mutex> lock(Mutex());
  UsersOf(device_).threads.erase(std::this_thread::get_id());
}

bool DeviceUse::IsWithinAnother() const {
  for (const DeviceUse* use = outer_; use != nullptr; use = use->outer_) {
    if (use->device_ == device_) return true;
  }
  return false;
}

DeviceWatch::DeviceWatch(c10::Device device) : device_(device) {
  const std::lock_guard<std::mutex> lock(Mutex());
  const Users& users = UsersOf(device_);
  begun_ = users.begun;
  others_ = users.threads.size() > users.threads.count(std::this_thread::get_id());
}

bool DeviceWatch::SawOthers() const {
  const std::lock_guard<std::mutex> lock(Mutex());
  return others_ || UsersOf(device_).begun > begun_;
}

}  // namespace stowage
