#include "tests/bench/transfer_savings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "tests/bench/svg_plot.h"
#include "tests/bench/transfer_ways.h"

namespace stowage {
namespace {

struct NamedLink {
  const char* name;
  int64_t bytes_per_second;  // what copies of pinned memory reach, not what the bus is sold as
};

constexpr NamedLink kLinks[] = {{"PCIe 3, 12.2 GB/s", 12200000000},
                                {"PCIe 4, 24 GB/s", 24000000000},
                                {"PCIe 5, 48 GB/s", 48000000000},
                                {"450 GB/s", 450000000000}};

// FLOP per byte.
constexpr int kBalances[] = {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};

constexpr double kPrecision = 0.01;

std::vector<std::string> ComparedWays() { return {kChainWay, kDynProgWay, kJointWay}; }

// A chain and what is computed of it once.
struct Subject {
  Chain chain;
  Bytes store_all_peak;
  Frontier recompute;
};

absl::StatusOr<Subject> MakeSubject(const Configuration& configuration) {
  absl::StatusOr<Chain> chain = ModelledChain(configuration);
  if (!chain.ok()) return chain.status();
  const absl::StatusOr<Simulation> store_all = Evaluator(*chain).Run(StoreAllSchedule(*chain));
  if (!store_all.ok()) return store_all.status();
  absl::StatusOr<Frontier> recompute = RecomputeFrontier(*chain);
  if (!recompute.ok()) return recompute.status();
  return Subject{*std::move(chain), store_all->peak, *std::move(recompute)};
}

std::vector<TransferWay> WaysOf(const Subject& subject, const TransferModel& link) {
  return Choose(AllTransferWays(subject.chain, subject.recompute, link), ComparedWays());
}

std::vector<std::string> NamesOf(const std::vector<TransferWay>& ways) {
  std::vector<std::string> names;
  for (const TransferWay& way : ways) names.push_back(way.name);
  return names;
}

// The least memory from `low` to `high` for which `keeps` says yes, up to the precision; nothing if
// it does not for `high`.
absl::StatusOr<std::optional<Bytes>> LeastMemory(
    Bytes low, Bytes high, const std::function<absl::StatusOr<bool>(Bytes)>& keeps) {
  absl::StatusOr<bool> yes = keeps(high);
  if (!yes.ok()) return yes.status();
  if (!*yes) return std::nullopt;
  while (static_cast<double>(low.value()) < (1 - kPrecision) * static_cast<double>(high.value())) {
    const Bytes middle((low.value() + high.value()) / 2);
    yes = keeps(middle);
    if (!yes.ok()) return yes.status();
    (*yes ? high : low) = middle;
  }
  return std::optional<Bytes>(high);
}

// Joint is tried only where none of the others can, as it is never slower than they are.
absl::StatusOr<std::vector<std::optional<Bytes>>> LeastMemories(
    const Subject& subject, const std::vector<TransferWay>& ways, const TransferModel& link) {
  const double limit = kSavingsLimit * static_cast<double>(subject.chain.ideal_time().value());
  const auto within_bound = [&](Bytes memory) -> absl::StatusOr<bool> {
    return static_cast<double>(MakespanLowerBound(Instance(subject.chain, link), memory).value()) <=
           limit;
  };
  Bytes high = subject.store_all_peak;
  const auto low = LeastMemory(Bytes(0), high, within_bound);
  if (!low.ok()) return low.status();
  std::vector<std::optional<Bytes>> all;
  for (const TransferWay& way : ways) {
    const auto keeps = [&](Bytes memory) -> absl::StatusOr<bool> {
      const Makespan makespan = way.within(memory);
      if (!makespan.ok()) return makespan.status();
      return makespan->has_value() && static_cast<double>((*makespan)->value()) <= limit;
    };
    const bool joint = way.name == kJointWay;
    const auto least = LeastMemory(**low, joint ? high : subject.store_all_peak, keeps);
    if (!least.ok()) return least.status();
    all.push_back(*least);
    if (*least) high = std::min(high, **least);
  }
  return all;
}

absl::StatusOr<std::vector<std::optional<double>>> Slowdowns(const Subject& subject,
                                                             const std::vector<TransferWay>& ways) {
  const Bytes half(subject.store_all_peak.value() / 2);
  std::vector<std::optional<double>> all;
  for (const TransferWay& way : ways) {
    const Makespan makespan = way.within(half);
    if (!makespan.ok()) return makespan.status();
    all.emplace_back();
    if (*makespan) {
      all.back() = static_cast<double>((*makespan)->value()) /
                   static_cast<double>(subject.chain.ideal_time().value());
    }
  }
  return all;
}

double EffectiveFlops(const DeviceModel& device) {
  return device.peak_flops_per_second * device.arithmetic_efficiency;
}

}  // namespace

absl::StatusOr<SavingsRow> ComputeSavings(const Configuration& configuration) {
  const absl::StatusOr<Subject> subject = MakeSubject(configuration);
  if (!subject.ok()) return subject.status();
  SavingsRow row{configuration, subject->store_all_peak, {}, {}};
  for (const NamedLink& named : kLinks) {
    const TransferModel link = HalfDuplexLink(named.bytes_per_second);
    const std::vector<TransferWay> ways = WaysOf(*subject, link);
    const auto least = LeastMemories(*subject, ways, link);
    if (!least.ok()) return least.status();
    row.ways = NamesOf(ways);
    row.least.push_back(*least);
  }
  return row;
}

absl::StatusOr<BalanceRow> ComputeBalance(const Configuration& configuration) {
  const absl::StatusOr<Subject> subject = MakeSubject(configuration);
  if (!subject.ok()) return subject.status();
  BalanceRow row{configuration, {}, {}};
  for (const int balance : kBalances) {
    const double bandwidth = EffectiveFlops(ModelledV100()) / balance;
    const std::vector<TransferWay> ways =
        WaysOf(*subject, HalfDuplexLink(static_cast<int64_t>(bandwidth)));
    const auto slowdowns = Slowdowns(*subject, ways);
    if (!slowdowns.ok()) return slowdowns.status();
    row.ways = NamesOf(ways);
    row.slowdowns.push_back(*slowdowns);
  }
  return row;
}

std::string SavingsMarkdown(const std::vector<SavingsRow>& rows) {
  std::string text = "| network (batch) | store-all |";
  for (const NamedLink& link : kLinks) absl::StrAppend(&text, " ", link.name, " |");
  text += "\n|---|---:|";
  for (size_t i = 0; i < std::size(kLinks); ++i) text += "---:|";
  text += "\n";
  for (const SavingsRow& row : rows) {
    absl::StrAppend(&text, "| ", row.configuration.network, " (", row.configuration.batch, ") | ",
                    ToString(row.store_all_peak), " |");
    for (const std::vector<std::optional<Bytes>>& ways : row.least) {
      const char* separator = " ";
      for (const std::optional<Bytes>& least : ways) {
        const double peak = static_cast<double>(row.store_all_peak.value());
        absl::StrAppend(
            &text, separator,
            least ? absl::StrFormat("%.1f", peak / static_cast<double>(least->value())) : "-");
        separator = " / ";
      }
      text += " |";
    }
    text += "\n";
  }
  return text;
}

std::string SavingsCsv(const std::vector<SavingsRow>& rows) {
  std::string csv = "network,batch,store_all_bytes,bytes_per_second,way,least_bytes\n";
  for (const SavingsRow& row : rows) {
    for (size_t link = 0; link < row.least.size(); ++link) {
      for (size_t way = 0; way < row.ways.size(); ++way) {
        if (!row.least[link][way]) continue;
        absl::StrAppendFormat(&csv, "%s,%d,%d,%d,%s,%d\n", row.configuration.network,
                              row.configuration.batch, row.store_all_peak.value(),
                              kLinks[link].bytes_per_second, row.ways[way],
                              row.least[link][way]->value());
      }
    }
  }
  return csv;
}

std::string BalanceMarkdown(const std::vector<BalanceRow>& rows) {
  std::string text = "| network (batch) |";
  for (const int balance : kBalances) absl::StrAppend(&text, " ", balance, " |");
  text += "\n|---|";
  for (size_t i = 0; i < std::size(kBalances); ++i) text += "---:|";
  text += "\n";
  for (const BalanceRow& row : rows) {
    absl::StrAppend(&text, "| ", row.configuration.network, " (", row.configuration.batch, ") |");
    for (const std::vector<std::optional<double>>& ways : row.slowdowns) {
      const char* separator = " ";
      for (const std::optional<double>& slowdown : ways) {
        absl::StrAppend(&text, separator,
                        slowdown ? absl::StrFormat("%.1f", 100 * (*slowdown - 1)) : "-");
        separator = " / ";
      }
      text += " |";
    }
    text += "\n";
  }
  return text;
}

std::string BalanceCsv(const std::vector<BalanceRow>& rows) {
  std::string csv = "network,batch,flop_per_byte,way,slowdown\n";
  for (const BalanceRow& row : rows) {
    for (size_t i = 0; i < row.slowdowns.size(); ++i) {
      for (size_t way = 0; way < row.ways.size(); ++way) {
        if (!row.slowdowns[i][way]) continue;
        absl::StrAppendFormat(&csv, "%s,%d,%d,%s,%.6f\n", row.configuration.network,
                              row.configuration.batch, kBalances[i], row.ways[way],
                              *row.slowdowns[i][way]);
      }
    }
  }
  return csv;
}

std::string BalanceSvg(const std::vector<BalanceRow>& rows) {
  std::vector<Panel> panels;
  for (const BalanceRow& row : rows) {
    Panel panel{
        row.configuration.network, "log2 of FLOP per transferred byte", "time lost [%]", {}, 60.0};
    for (size_t way = 0; way < row.ways.size(); ++way) {
      Series series{row.ways[way]};
      for (size_t i = 0; i < row.slowdowns.size(); ++i) {
        if (!row.slowdowns[i][way]) continue;
        series.line.push_back({std::log2(kBalances[i]), 100 * (*row.slowdowns[i][way] - 1)});
      }
      panel.series.push_back(series);
    }
    panels.push_back(panel);
  }
  return RenderSvg("Time lost in half of store-all's memory", panels);
}

}  // namespace stowage
