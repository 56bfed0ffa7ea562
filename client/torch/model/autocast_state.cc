#include "client/torch/model/autocast_state.h"

#include <ATen/autocast_mode.h>

#include "client/torch/base/torch_version.h"

namespace stowage {
namespace {

#if STOWAGE_AUTOCAST_BY_DEVICE
bool IsEnabled(at::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void SetEnabled(at::DeviceType device, bool on) { at::autocast::set_autocast_enabled(device, on); }
at::ScalarType TypeOf(at::DeviceType device) { return at::autocast::get_autocast_dtype(device); }
void SetType(at::DeviceType device, at::ScalarType type) {
  at::autocast::set_autocast_dtype(device, type);
}
#else
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
  state.cpu_ = {IsEnabled(at::kCPU), TypeOf(at::kCPU)};
  state.cuda_ = {IsEnabled(at::kCUDA), TypeOf(at::kCUDA)};
  state.remembers_casts_ = at::autocast::is_autocast_cache_enabled();
  return state;
}

AutocastState AutocastState::Off() const {
  AutocastState state = *this;
  state.cpu_.enabled = state.cuda_.enabled = false;
  return state;
}

std::string AutocastState::ToString() const {
  std::string text;
  if (cpu_.enabled) text = std::string("cpu:") + c10::toString(cpu_.type);
  if (cuda_.enabled) {
    text += std::string(text.empty() ? "cuda:" : " cuda:") + c10::toString(cuda_.type);
  }
  return text.empty() ? "off" : text;
}

void AutocastState::Apply() const {
  SetEnabled(at::kCPU, cpu_.enabled);
  SetEnabled(at::kCUDA, cuda_.enabled);
  if (cpu_.type != at::ScalarType::Undefined) SetType(at::kCPU, cpu_.type);
  if (cuda_.type != at::ScalarType::Undefined) SetType(at::kCUDA, cuda_.type);
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
