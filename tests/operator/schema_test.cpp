// SPDX-License-Identifier: Apache-2.0
// The schema of crds/ and the C++ types of operator/api, held against each other field by field.
#include <fstream>
#include <set>
#include <sstream>

#include "operator/api/decimal.h"
#include "operator/api/time_text.h"
#include "tests/operator/world.h"

namespace eldr::op::testing {
namespace {

Json schema_of(const char* part) {
  std::ifstream in(std::string(ELDR_SOURCE_DIR) + "/crds/eldrpolicies.yaml");
  std::stringstream text;
  text << in.rdbuf();
  const Json crd = from_yaml(text.str());
  return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part];
}

/// A value with every field of a schema set, so that what a type does not know gets lost on the way through
/// it.
Json everything(const Json& schema) {
  const std::string type = schema.value("type", "");
  if (schema.contains("enum")) return schema["enum"][0];
  if (type == "string") return schema.value("format", "") == "date-time" ? "2026-11-30T00:00:00Z" : "x";
  if (type == "integer") return schema.value("minimum", 1) + 1;
  if (type == "boolean") return true;
  if (type == "array") return Json::array({everything(schema["items"])});
  if (schema.contains("additionalProperties")) return {{"k", everything(schema["additionalProperties"])}};
  Json object = Json::object();
  if (schema.contains("properties"))
    for (const auto& [name, inner] : schema["properties"].items()) object[name] = everything(inner);
  if (schema.value("x-kubernetes-preserve-unknown-fields", false)) object["anything"] = "kept";
  return object;
}

void walk(const Json& schema, const std::string& path,
          const std::function<void(const std::string&, const Json&)>& visit) {
  visit(path, schema);
  if (schema.contains("properties"))
    for (const auto& [name, inner] : schema["properties"].items()) walk(inner, path + "." + name, visit);
  if (schema.contains("items")) walk(schema["items"], path + "[]", visit);
  if (schema.contains("additionalProperties")) walk(schema["additionalProperties"], path + "{}", visit);
}

TEST(Schema, EveryFieldOfTheSpecIsReadAndWrittenByTheTypes) {
  const Json full = everything(schema_of("spec"));
  // Values that the rules would refuse do not matter here, so the parser's errors are looked past by way of
  // the writer.
  const Json object = {{"metadata", {{"name", "a"}}}, {"spec", full}, {"status", Json::object()}};
  const auto spec = read_spec_unchecked(object);
  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(Json::diff(full, to_json(*spec)), Json::array()) << "schema -> type -> JSON differs";
}

TEST(Schema, EveryFieldOfTheStatusIsReadAndWrittenByTheTypes) {
  const Json full = everything(schema_of("status"));
  EXPECT_EQ(Json::diff(full, to_json(parse_status({{"status", full}}))), Json::array());
}

TEST(Schema, DefaultsAreTheTypesOwn) {
  // A policy with only what is required, once with the schema's defaults filled in and once without.
  Json bare = sample_policy();
  bare["spec"] = {
      {"model", {{"name", "m"}}},
      {"dataset", {{"configMap", {{"name", "c"}, {"key", "k"}}}}},
      {"prefill", {{"selector", {{"matchLabels", {{"a", "b"}}}}}}},
      {"decode", {{"scaleTargetRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "d"}}}}},
      {"calibration", {{"engine", {{"service", {{"url", "http://e"}}}}}}}};
  Json filled = bare;
  const std::function<void(Json&, const Json&)> fill = [&](Json& value, const Json& schema) {
    if (!schema.contains("properties")) return;
    for (const auto& [name, inner] : schema["properties"].items()) {
      if (!value.contains(name) && inner.contains("default")) value[name] = inner["default"];
      if (value.contains(name)) fill(value[name], inner);
    }
  };
  fill(filled["spec"], schema_of("spec"));
  EXPECT_NE(filled, bare);
  const auto from_bare = parse_policy(bare);
  const auto from_filled = parse_policy(filled);
  ASSERT_TRUE(from_bare) << from_bare.error().to_string();
  ASSERT_TRUE(from_filled) << from_filled.error().to_string();
  EXPECT_EQ(to_json(from_bare->spec), to_json(from_filled->spec));
}

TEST(Schema, EveryFieldIsDescribedAndEveryTextAndListIsLimited) {
  for (const char* part : {"spec", "status"})
    walk(schema_of(part), part, [](const std::string& path, const Json& schema) {
      const bool element = path.ends_with("[]") || path.ends_with("{}");
      const auto need = [&path](bool holds, const char* what) {
        EXPECT_TRUE(holds) << path << " has no " << what;
      };
      const std::string type = schema.value("type", "");
      const bool free_text =
          type == "string" && !schema.contains("enum") && schema.value("format", "") != "date-time";
      need(element || !schema.value("description", "").empty(), "description");
      need(!type.empty(), "type");
      need(!free_text || schema.contains("maxLength"), "maxLength");
      need(type != "array" || schema.contains("maxItems"), "maxItems");
      need(!schema.contains("additionalProperties") || schema.contains("maxProperties"), "maxProperties");
    });
}

TEST(FieldsPage, ListsEveryField) {
  std::ifstream in(std::string(ELDR_SOURCE_DIR) + "/docs/reference/eldrpolicy.md");
  std::stringstream text;
  text << in.rdbuf();
  const std::string page = text.str();
  ASSERT_FALSE(page.empty());
  for (const char* part : {"spec", "status"})
    walk(schema_of(part), part, [&page](const std::string& path, const Json& schema) {
      if (schema.contains("properties") || path.find("[]") != std::string::npos ||
          path.find("{}") != std::string::npos)
        return;
      EXPECT_NE(page.find("`" + path.substr(path.find('.') + 1) + "`"), std::string::npos) << path;
    });
}

TEST(Decimal, ReadsOnlyPlainDecimals) {
  EXPECT_EQ(parse_decimal("0.1"), 0.1);
  EXPECT_EQ(parse_decimal("2"), 2.0);
  EXPECT_EQ(parse_decimal("-0.25"), -0.25);
  for (const char* text : {"", "-", ".5", "5.", "1e3", " 1", "1 ", "nan", "inf", "0x1", "1.2.3", "--1", "+1"})
    EXPECT_FALSE(parse_decimal(text)) << text;
  EXPECT_EQ(decimal_text(0.49894), "0.4989");
  EXPECT_EQ(decimal_text(1.0), "1");
  EXPECT_EQ(decimal_text(-0.00001), "0");
}

TEST(TimeText, ReadsWhatItWrites) {
  for (const char* text : {"2026-11-30T01:31:54Z", "1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z"}) {
    const auto time = parse_rfc3339(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(format_rfc3339(*time), text);
  }
  for (const char* text : {"", "2026", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-11-30T25:00:00Z",
                           "2026-11-30T01:31:54+01:00", "yesterday at noon, maybe"})
    EXPECT_FALSE(parse_rfc3339(text)) << text;
}

}  // namespace
}  // namespace eldr::op::testing
