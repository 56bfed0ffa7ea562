#include "client/torch/model/autocast_state.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <array>

#include "client/torch/base/torch_version.h"

namespace stowage {
namespace {

#if STOWAGE_AUTOCAST_BY_DEVICE
constexpr std::array kDevices = {at::kCPU, at::kCUDA, at::kPrivateUse1};

bool IsEnabled(at::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void SetEnabled(at::DeviceType device, bool on) { at::autocast::set_autocast_enabled(device, on); }
at::ScalarType TypeOf(at::DeviceType device) { return at::autocast::get_autocast_dtype(device); }
void SetType(at::DeviceType device, at::ScalarType type) {
  at::autocast::set_autocast_dtype(device, type);
}
#else
constexpr std::array kDevices = {at::kCPU, at::kCUDA};

bool IsEnabled(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}
void SetEnabled(at::DeviceType device, bool on) {
  device == at::kCPU ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
}
at::ScalarType TypeOf(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::get_autocast_cpu_dtype()
                            : at::autocast::get_autocast_gpu_dtype();
}
void SetType(at::DeviceType device, at::ScalarType type) {
  device == at::kCPU ? at::autocast::set_autocast_cpu_dtype(type)
                     : at::autocast::set_autocast_gpu_dtype(type);
}
#endif

}  // namespace

AutocastState AutocastState::Capture() {
  AutocastState state;
  for (const at::DeviceType device : kDevices) {
    state.devices_.push_back({device, TypeOf(device), IsEnabled(device)});
  }
  state.remembers_casts_ = at::autocast::is_autocast_cache_enabled();
  return state;
}

AutocastState AutocastState::Off() const {
  AutocastState state = *this;
  for (OfDevice& of : state.devices_) of.enabled = false;
  return state;
}

bool AutocastState::enabled() const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const OfDevice& of) { return of.enabled; });
}

std::string AutocastState::ToString() const {
  std::string text;
  for (const OfDevice& of : devices_) {
    if (!of.enabled) continue;
    if (!text.empty()) text += " ";
    text += c10::DeviceTypeName(of.device, /*lower_case=*/true) + ":" + c10::toString(of.type);
  }
  return text.empty() ? "off" : text;
}

void AutocastState::Apply() const {
  for (const at::DeviceType device : kDevices) SetEnabled(device, false);
  for (const OfDevice& of : devices_) {
    SetType(of.device, of.type);
    SetEnabled(of.device, of.enabled);
  }
  at::autocast::set_autocast_cache_enabled(remembers_casts_);
}

AutocastScope::AutocastScope(const AutocastState& state)
    : before_(AutocastState::Capture()), casts_(state.enabled()) {
  state.Apply();
  if (casts_) at::autocast::clear_cache();
}

AutocastScope::~AutocastScope() {
  if (casts_) at::autocast::clear_cache();
  before_.Apply();
}

}  // namespace stowage
