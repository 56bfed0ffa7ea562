#include "tests/solvers/random_chain.h"

#include <cstdint>
#include <sstream>

namespace stowage::testing {
namespace {

int Draw(int low, int high, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(low, high)(*rng);
}

Stage RandomStage(const RandomChainOptions& o, std::mt19937_64* rng) {
  Stage s;
  s.forward_time = Nanos(Draw(0, o.max_time, rng));
  s.backward_time = Nanos(Draw(0, o.max_time, rng));
  s.output = Bytes(Draw(0, o.max_size, rng));
  s.saved = s.output + Bytes(Draw(0, o.max_size, rng));
  s.output_gradient = Bytes(Draw(0, o.max_size, rng));
  s.forward_saving_overhead = Bytes(Draw(0, o.max_size, rng));
  s.forward_overhead = Bytes(Draw(0, o.max_size, rng));
  s.backward_overhead = Bytes(Draw(0, o.max_size, rng));
  s.must_keep = o.with_flags && Draw(0, 5, rng) == 0;
  if (o.with_stops && Draw(0, 2, rng) > 0) {
    s.recompute_saving_time = Nanos(Draw(0, static_cast<int>(s.forward_time.value()), rng));
    const Bytes most = s.output + s.forward_saving_overhead;
    // At times as much as a forward that goes on.
    if (Draw(0, 2, rng) > 0) {
      s.recompute_saving_overhead = Bytes(Draw(0, static_cast<int>(most.value()), rng));
    }
  }
  return s;
}

// What a schedule under construction holds.
struct Held {
  std::vector<bool> plain, saved, ran;
  int gradient;
};

bool Available(const Held& held, int l) {
  return held.plain[static_cast<size_t>(l)] || held.saved[static_cast<size_t>(l)];
}

// Forwards a random way from the nearest available activation so that backward `target` can run.
void Approach(const Chain& chain, int target, Held* held, std::mt19937_64* rng,
              Schedule* schedule) {
  int from = target - 1;
  while (!Available(*held, from)) --from;
  for (int l = from + 1; l <= target; ++l) {
    const size_t i = static_cast<size_t>(l);
    const bool input_plain = held->plain[i - 1];
    const bool must_save = l == target || !chain.stage(l).recomputable();
    const int way = must_save ? 0 : Draw(0, 2, rng);
    if (way == 0) {
      if (!held->saved[i]) schedule->push_back(ForwardSave(l));
      held->saved[i] = true;
    } else if (!held->plain[i]) {
      // a^0 is never dropped: nothing could bring it back.
      const bool drop = way == 2 && input_plain && l > 1;
      schedule->push_back(drop ? ForwardNoSaveFreeInput(l) : ForwardNoSave(l));
      held->plain[i] = true;
      if (drop) held->plain[i - 1] = false;
    }
    held->ran[i] = true;
  }
}

// Now and then drops or reduces something that can be computed again.
void MaybeDrop(const Chain& chain, Held* held, std::mt19937_64* rng, Schedule* schedule) {
  const int l = Draw(1, held->gradient, rng);
  const size_t i = static_cast<size_t>(l);
  if (l >= held->gradient || !chain.stage(l).recomputable()) return;
  if (held->plain[i] && Draw(0, 3, rng) == 0) {
    schedule->push_back(Discard(TensorKind::kActivation, l));
    held->plain[i] = false;
  } else if (held->saved[i] && Draw(0, 3, rng) == 0) {
    const bool reduce = !held->plain[i] && Draw(0, 1, rng) == 0;
    schedule->push_back(reduce ? DropSavedKeepOutput(l) : Discard(TensorKind::kSaved, l));
    held->saved[i] = false;
    if (reduce) held->plain[i] = true;
  }
}

}  // namespace

RandomChainOptions VariedOptions(int i) {
  RandomChainOptions options;
  options.with_loss = i % 3 != 0;
  options.with_flags = i % 4 == 0;
  options.with_input_gradient = i % 5 == 0;
  options.with_stops = i % 7 < 4;
  return options;
}

Chain RandomChain(int length, const RandomChainOptions& options, std::mt19937_64* rng) {
  ChainSpec spec;
  spec.input = Bytes(Draw(0, options.max_size, rng));
  if (options.with_input_gradient) spec.input_gradient = Bytes(Draw(0, options.max_size, rng));
  for (int l = 0; l < length; ++l) spec.stages.push_back(RandomStage(options, rng));
  if (options.with_loss) {
    RandomChainOptions of_loss = options;
    of_loss.with_stops = false;
    spec.loss = RandomStage(of_loss, rng);
  }
  return *Chain::Create(std::move(spec));
}

Chain PeriodicChain(int length, int period, std::mt19937_64* rng) {
  RandomChainOptions options;
  options.max_size = 6;
  options.with_flags = true;
  ChainSpec spec = RandomChain(period + 2, options, rng).spec();
  const Stage head = spec.stages.back();
  spec.stages.pop_back();
  for (int l = period + 1; l < length - 1; ++l)
    spec.stages.push_back(spec.stages[static_cast<size_t>(l - period)]);
  spec.stages.push_back(head);
  return *Chain::Create(spec);
}

Chain WithSavedTensors(const Chain& chain, std::mt19937_64* rng) {
  ChainSpec spec = chain.spec();
  const auto list = [rng](Stage* stage) {
    int rest = static_cast<int>((stage->saved - stage->output).value());
    for (int n = Draw(0, 4, rng); n > 0; --n) {
      const int bytes = Draw(0, rest, rng);
      stage->saved_tensors.push_back(Bytes(bytes));
      rest -= bytes;
    }
  };
  for (Stage& stage : spec.stages) list(&stage);
  list(&spec.loss);
  return *Chain::Create(std::move(spec));
}

Schedule RandomSchedule(const Chain& chain, std::mt19937_64* rng) {
  const int last = chain.length() + 1;
  const std::vector<bool> none(static_cast<size_t>(last) + 1, false);
  Held held{none, none, none, last};
  held.plain[0] = true;
  Schedule schedule;
  while (held.gradient > 0) {
    const int l = held.gradient;
    const size_t i = static_cast<size_t>(l);
    while (!held.saved[i] || !Available(held, l - 1)) {
      // A dropped input of the backward has to come back before its stage's saved tensors are of
      // use.
      Approach(chain, Available(held, l - 1) ? l : l - 1, &held, rng, &schedule);
    }
    schedule.push_back(Backward(l));
    held.saved[i] = false;
    held.plain[i - 1] = false;
    held.gradient = l - 1;
    if (held.gradient > 1) MaybeDrop(chain, &held, rng, &schedule);
  }
  return schedule;
}

std::string Describe(const Chain& chain) {
  std::ostringstream out;
  out << "L=" << chain.length() << " input=" << chain.activation(0).value()
      << " input_gradient=" << chain.gradient(0).value();
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& s = chain.stage(l);
    out << "\n  " << l << ": u_f=" << s.forward_time.value() << " u_b=" << s.backward_time.value()
        << " a=" << s.output.value() << " saved=" << s.saved.value()
        << " delta=" << s.output_gradient.value() << " o_f+=" << s.forward_saving_overhead.value()
        << " o_f0=" << s.forward_overhead.value() << " o_b=" << s.backward_overhead.value()
        << (s.recomputable() ? "" : " keep");
    if (s.stops()) {
      out << " stops=" << s.stopped_time().value() << "/" << s.stopped_overhead().value();
    }
    for (const Bytes bytes : s.saved_tensors) out << " tensor=" << bytes.value();
  }
  return out.str();
}

}  // namespace stowage::testing
