#include "solvers/base/text_escape.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/solvers/base/json_reader.h"

namespace stowage {
namespace {

TEST(TextEscape, JsonKeepsCharactersAndEndsNothing) {
  EXPECT_EQ(JsonString("conv 1"), "\"conv 1\"");
  EXPECT_EQ(JsonString("</script>"), "\"\\u003c/script\\u003e\"");
  EXPECT_EQ(JsonString("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(JsonString("r\xc3\xa9seau \xf0\x9f\x90\x8d"), "\"r\\u00e9seau \\ud83d\\udc0d\"");
}

TEST(TextEscape, JsonInUtf8EscapesWhatItMust) {
  EXPECT_EQ(JsonStringUtf8("r\xc3\xa9seau \xf0\x9f\x90\x8d <\xff>"),
            "\"r\xc3\xa9seau \xf0\x9f\x90\x8d <\xef\xbf\xbd>\"");
  EXPECT_EQ(JsonStringUtf8("a\"b\\c\n\x7f"), "\"a\\\"b\\\\c\\u000a\\u007f\"");
}

TEST(TextEscape, WhatIsNoUtf8IsReplaced) {
  // A byte that begins nothing, one that is cut off, an overlong form, a surrogate, beyond Unicode.
  for (const char* text : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(JsonString(text).substr(0, 7), "\"\\ufffd") << text;
    EXPECT_EQ(HtmlEscaped(text).substr(0, 8), "&#65533;") << text;
  }
  EXPECT_EQ(JsonString(std::string("\xe2\x28\xa1", 3)), "\"\\ufffd(\\ufffd\"");
}

TEST(TextEscape, HtmlKeepsCharactersAndEndsNothing) {
  EXPECT_EQ(HtmlEscaped("a <b> & 'c' \"d\""), "a &#60;b&#62; &#38; &#39;c&#39; &#34;d&#34;");
  EXPECT_EQ(HtmlEscaped("\xc3\xa9"), "&#233;");
  EXPECT_EQ(HtmlEscaped(std::string("\x00\x1b", 2)), "&#65533;&#65533;");
}

TEST(TextEscape, JsonOfAnyAsciiReadsAsItself) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (int k = 0; k < i % 20; ++k) text.push_back(static_cast<char>(rng() % 128));
    const std::string quoted = JsonString(text);
    EXPECT_EQ(quoted.find_first_of("<>&\n"), std::string::npos);
    const auto json = testing::ReadJson(quoted);
    ASSERT_TRUE(json) << quoted;
    EXPECT_EQ(json->text, text);
  }
}

}  // namespace
}  // namespace stowage
