#include "client/cli/fit_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/cells.h"
#include "client/cli/json_text.h"
#include "client/cli/listing.h"

namespace stowage {
namespace {

const char* NameOf(FittedBy by) {
  switch (by) {
    case FittedBy::kNothing:
      return "does not fit";
    case FittedBy::kPlain:
      return "plain";
    case FittedBy::kCatalogue:
      return "catalogue";
    case FittedBy::kSolver:
      return "plan";
  }
  return "?";
}

const FittedBatch* Find(const BatchFitting& fitting, int64_t batch) {
  const auto found = std::find_if(fitting.batches.begin(), fitting.batches.end(),
                                  [batch](const FittedBatch& one) { return one.batch == batch; });
  return found == fitting.batches.end() ? nullptr : &*found;
}

std::vector<Listing::Cell> RowOf(const FittedBatch& one) {
  const auto figure = [&one](const std::string& text, int64_t value) {
    return one.fits() ? Listing::Number(text, value) : Listing::Nothing();
  };
  const bool timed = one.samples_per_second > 0;
  return {Listing::Integer(one.batch),
          Listing::YesNo(one.plain_fits()),
          Listing::Number(Mebibytes(one.plain_peak), one.plain_peak.value()),
          Listing::Text(NameOf(one.by)),
          figure(Mebibytes(one.peak), one.peak.value()),
          figure(Milliseconds(one.makespan), one.makespan.value()),
          timed ? Listing::Number(absl::StrFormat("%.1f", one.samples_per_second),
                                  one.samples_per_second)
                : Listing::Nothing(),
          timed ? Listing::Number(absl::StrFormat("%.1f%%", 100 * one.overhead()), one.overhead())
                : Listing::Nothing(),
          {"", one.within_profiles ? "true" : "false", false}};
}

Listing ListingOf(const std::vector<FittedBatch>& batches) {
  Listing listing({{"batch", "", "batch"},
                   {"plain", "fits", "plain_fits"},
                   {"plain", "peak MiB", "plain_peak_bytes"},
                   {"by", "", "by"},
                   {"peak", "MiB", "peak_bytes"},
                   {"step", "ms", "makespan_ns"},
                   {"samples", "a second", "samples_per_second"},
                   {"over", "plain", "overhead"},
                   {"", "", "within_profiles"}});
  for (const FittedBatch& one : batches) listing.AddRow(RowOf(one));
  return listing;
}

// "345", or what 0 means.
std::string BatchWords(int64_t batch) {
  return batch == 0 ? "not even a batch of 1" : absl::StrCat(batch);
}

std::string AnswerTo(const BatchFitting& fitting, int64_t asked) {
  if (asked == 0) return "";
  const FittedBatch* one = Find(fitting, asked);
  if (one == nullptr || !one->fits()) {
    return absl::StrCat("\nbatch ", asked, " does not fit, plain or by a plan\n");
  }
  if (one->plain_fits()) return absl::StrCat("\nbatch ", asked, " fits without a plan\n");
  return absl::StrCat("\nbatch ", asked, " fits by a plan (",
                      one->by == FittedBy::kCatalogue ? "from the catalogue" : "solved", "), in ",
                      ToString(one->peak), ", ", absl::StrFormat("%.1f%%", 100 * one->overhead()),
                      " over plain training\n");
}

std::string Notes(const FitTitle& title, const BatchFitting& fitting) {
  const auto has = [&fitting](auto is) {
    return std::any_of(fitting.batches.begin(), fitting.batches.end(), is);
  };
  std::string notes =
      "plain: training stores every activation. plan: it recomputes some, with --offload it may "
      "copy "
      "some to the host.\n";
  if (title.modelled) notes += "All times are modelled, none was measured.\n";
  if (has([](const FittedBatch& one) { return one.by == FittedBy::kCatalogue; })) {
    notes += "Plans named 'catalogue' were solved beforehand.\n";
  }
  if (has([](const FittedBatch& one) { return !one.within_profiles; })) {
    notes +=
        "Figures of batches outside those of the profiles are extrapolated along straight lines.\n";
  }
  return "\n" + notes;
}

std::string TextOf(const FitTitle& title, const DeviceBudget& budget, const BatchFitting& fitting,
                   int64_t asked) {
  std::string fastest = "not known without times";
  if (fitting.fastest > 0) {
    fastest =
        absl::StrFormat("%d, %.1f samples a second", fitting.fastest, fitting.samples_per_second);
  }
  return absl::StrCat(title.name, ", ", title.details, "\n\n", ToString(budget),
                      "\nlargest batch, plain training ", BatchWords(fitting.largest_plain),
                      "\nlargest batch, by plans       ", BatchWords(fitting.largest),
                      "\nfastest batch                 ", fastest, "\n", AnswerTo(fitting, asked),
                      "\n", ListingOf(WorthShowing(fitting, asked)).Table(), Notes(title, fitting));
}

std::string JsonOf(const FitTitle& title, const DeviceBudget& budget, const BatchFitting& fitting,
                   int64_t asked) {
  std::vector<std::string> subtracted;
  for (const DeviceBudget::Item& item : budget.subtracted) {
    subtracted.push_back(
        JsonObject({{"what", JsonString(item.what)}, {"bytes", absl::StrCat(item.bytes.value())}}));
  }
  const bool timed = fitting.fastest > 0;
  const JsonFields fields = {
      {"model", JsonString(title.name)},
      {"device", title.device.empty() ? "null" : JsonString(title.device)},
      {"modelled", JsonBool(title.modelled)},
      {"device_bytes", absl::StrCat(budget.device.value())},
      {"subtracted", JsonArray(subtracted)},
      {"activation_bytes", absl::StrCat(budget.activations.value())},
      {"largest_plain", absl::StrCat(fitting.largest_plain)},
      {"largest", absl::StrCat(fitting.largest)},
      {"fastest", timed ? absl::StrCat(fitting.fastest) : "null"},
      {"samples_per_second", timed ? JsonNumber(fitting.samples_per_second) : "null"},
      {"batches", ListingOf(fitting.batches).Json()},
      {"fits", asked > 0 ? JsonBool(Fits(fitting, asked)) : "null"}};
  return JsonObject(fields) + "\n";
}

}  // namespace

bool Fits(const BatchFitting& fitting, int64_t asked) {
  if (asked == 0) return fitting.largest > 0;
  const FittedBatch* one = Find(fitting, asked);
  return one != nullptr && one->fits();
}

std::string FitReport(const FitTitle& title, const DeviceBudget& budget,
                      const BatchFitting& fitting, int64_t asked, Format format) {
  switch (format) {
    case Format::kText:
      return TextOf(title, budget, fitting, asked);
    case Format::kJson:
      return JsonOf(title, budget, fitting, asked);
    case Format::kCsv:
      return ListingOf(fitting.batches).Csv();
  }
  return "";
}

}  // namespace stowage
