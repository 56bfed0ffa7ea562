// Arbitrary text as a file of tokens, of identities, and as a client's file with its token: refused
// without showing what is in it, or tables that know whom the text names and nobody else, by the
// credential that a client reads.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/rpc/credentials.h"
#include "server/auth/credential_lines.h"
#include "server/auth/san_table.h"
#include "server/auth/token_file.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/text_file.h"

namespace stowage {
namespace {

using testing::Require;

constexpr char kHashed[] = "sha256:";

bool Alike(const Caller& a, const Caller& b) { return a.tenant == b.tenant && a.role == b.role; }

void CheckRefusal(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status) && absl::StartsWith(status.message(), "file"),
          "the error names the file", status.ToString());
}

// Lines that name credentials say nothing of what they are when one of them is refused.
void CheckHidden(const absl::Status& status, const std::vector<CredentialLine>& lines) {
  for (const CredentialLine& line : lines) {
    const bool secret = line.credential.size() > 20;
    Require(!secret || !absl::StrContains(status.message(), line.credential), "no secret is shown",
            status.ToString());
  }
}

void CheckTokens(const std::string& text, const std::vector<CredentialLine>& lines) {
  const absl::StatusOr<TokenTable> table = TokenTable::Parse("file", text);
  if (!table.ok()) {
    CheckRefusal(table.status());
    CheckHidden(table.status(), lines);
    return;
  }
  Require(table->size() == lines.size() && !lines.empty(), "every line has a token", text);
  std::set<std::string> known;
  for (const CredentialLine& line : lines) known.insert(line.credential);
  for (const CredentialLine& line : lines) {
    if (absl::StartsWith(line.credential, kHashed)) continue;
    const Caller* const caller = table->Find(line.credential);
    Require(caller != nullptr && Alike(*caller, line.caller), "a token is its line's", text);
    Require(!caller->identity.empty() && caller->identity != line.credential,
            "an identity is no secret", text);
    const std::string longer = line.credential + "x";
    Require(known.count(longer) == 1 || table->Find(longer) == nullptr, "a token is known whole",
            text);
  }
  Require(table->Find("") == nullptr, "no token is nobody", text);
}

void CheckIdentities(const std::string& text, const std::vector<CredentialLine>& lines) {
  const absl::StatusOr<SanTable> table = SanTable::Parse({}, "file", text);
  if (!table.ok()) {
    CheckRefusal(table.status());
    CheckHidden(table.status(), lines);
    return;
  }
  bool any = false;
  for (const CredentialLine& line : lines) {
    any |= line.credential == "*";
    // Whatever kind of name it is, a certificate with it is let in.
    std::vector<std::string> names = {line.credential};
    if (absl::StartsWith(line.credential, "*.")) names.push_back("x" + line.credential.substr(1));
    const std::optional<Caller> found = table->Find({names, names, names});
    Require(found && !found->identity.empty(), "who is named is known", text);
    if (&line == &lines.front()) Require(Alike(*found, line.caller), "the first line counts", text);
  }
  Require(table->Find({}).has_value() == any, "a certificate without names is nobody", text);
}

void CheckServer(const std::string& text) {
  const absl::StatusOr<std::vector<CredentialLine>> lines = ReadCredentialLines("file", text);
  if (!lines.ok()) {
    CheckRefusal(lines.status());
    Require(TokenTable::Parse("file", text).status() == lines.status() &&
                SanTable::Parse({}, "file", text).status() == lines.status(),
            "lines are read alike", text);
    return;
  }
  CheckTokens(text, *lines);
  CheckIdentities(text, *lines);
}

absl::StatusOr<std::string> ReadToken(const testing::TextFile& file) {
  GrpcOptions options;
  options.token_file = file.path();
  return BearerToken(options).Get();
}

// The refusal of a file without its path.
std::string RefusalOf(const testing::TextFile& file) {
  const absl::Status status = ReadToken(file).status();
  Require(absl::IsInvalidArgument(status), "bad text is a bad argument");
  return absl::StrReplaceAll(status.message(), {{file.path(), ""}});
}

void CheckClient(const std::string& text) {
  const testing::TextFile file(text);
  const absl::StatusOr<std::string> token = ReadToken(file);
  if (!token.ok()) {
    // A refusal says the same of every text that is there: the text may be words of the message.
    Require(text.empty() || RefusalOf(file) == RefusalOf(testing::TextFile("\x7f")),
            "no secret is shown", token.status().ToString());
    return;
  }
  Require(!token->empty(), "there is a token", text);
  const bool plain = token->size() >= 16 && token->size() <= 1024 && (*token)[0] != '#' &&
                     !absl::StartsWith(*token, kHashed);
  if (!plain) return;
  const absl::StatusOr<TokenTable> table = TokenTable::Parse("file", *token + " tenant reader\n");
  Require(table.ok() && table->Find(*token) != nullptr, "both sides read a token alike", text);
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  stowage::CheckServer(text);
  stowage::CheckClient(text);
  return 0;
}
