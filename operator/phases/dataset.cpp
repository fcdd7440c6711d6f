// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/dataset.h"

#include "lib/base/digest.h"
#include "lib/kube/object.h"
#include "operator/api/conditions.h"

namespace eldr::op {
namespace {

constexpr std::size_t kMaxConfigMapBytes = std::size_t{4} << 20;

const char* wrong_with_line(std::string_view line) {
  const Json value = Json::parse(line, nullptr, false);
  if (value.is_discarded()) return "is not JSON";
  if (!value.is_object()) return "is not a JSON object";
  const auto prompt = value.find("prompt");
  if (prompt != value.end()) {
    if (prompt->is_string() && prompt->get_ref<const std::string&>().empty())
      return "has an empty \"prompt\"";
    return prompt->is_string() || prompt->is_array() ? nullptr : "has a \"prompt\" that is not text";
  }
  const auto messages = value.find("messages");
  if (messages == value.end()) return "has neither \"prompt\" nor \"messages\"";
  return messages->is_array() && !messages->empty() ? nullptr : "has \"messages\" that are no list";
}

/// The bytes under a key of a ConfigMap; kNotFound lists the keys that it has.
Result<std::string> content_of(const Json& map, const std::string& key) {
  const Json* text = kube::find(map, {"data", key});
  if (text != nullptr && text->is_string()) return text->get<std::string>();
  const Json* binary = kube::find(map, {"binaryData", key});
  if (binary != nullptr && binary->is_string()) {
    auto bytes = base64_decode(binary->get_ref<const std::string&>(), kMaxConfigMapBytes);
    if (!bytes) return failure(bytes.error());
    return std::string(as_text(*bytes));
  }
  std::string keys;
  for (const char* member : {"data", "binaryData"})
    if (const Json* entries = kube::find(map, {member}); entries != nullptr && entries->is_object())
      for (const auto& [name, value] : entries->items()) keys += (keys.empty() ? "" : ", ") + name;
  return failure(Code::kNotFound, keys.empty() ? "it has no keys" : "it has " + keys);
}

void find_config_map(Scope& scope, const ConfigMapKey& source) {
  const std::string where = "ConfigMap " + scope.policy.key.ns + "/" + source.name;
  const auto map = scope.client().get(kube::kConfigMaps, {scope.policy.key.ns, source.name});
  if (!map) {
    if (map.error().code != Code::kNotFound) {
      scope.errors.push_back(map.error());
      return scope.set_unknown(kDatasetAvailable, reason::kApiError, map.error().to_string());
    }
    return scope.set(kDatasetAvailable, false, reason::kConfigMapNotFound,
                     "spec.dataset.configMap.name: " + where +
                         " does not exist; create it in the policy's namespace or name another");
  }
  const auto content = content_of(*map, source.key);
  if (!content)
    return scope.set(kDatasetAvailable, false, reason::kKeyNotFound,
                     "spec.dataset.configMap.key: " + where + " has no key \"" + source.key + "\"; " +
                         content.error().message);
  if (const Status good = check_prompts(*content); !good)
    return scope.set(kDatasetAvailable, false, reason::kDatasetInvalid,
                     where + ", key " + source.key + ": " + good.error().message);
  const std::string hash = sha256_hex(*content);
  scope.dataset = Json{{"sha256", hash}};
  scope.set(kDatasetAvailable, true, reason::kDatasetFound,
            where + ", key " + source.key + ", sha256 " + hash.substr(0, 10));
}

void find_claim(Scope& scope, const VolumeFile& source, const char* field, const char* kind) {
  const std::string where = "PersistentVolumeClaim " + scope.policy.key.ns + "/" + source.claim_name;
  const auto claim =
      scope.client().get(kube::kPersistentVolumeClaims, {scope.policy.key.ns, source.claim_name});
  if (!claim) {
    if (claim.error().code != Code::kNotFound) {
      scope.errors.push_back(claim.error());
      return scope.set_unknown(kDatasetAvailable, reason::kApiError, claim.error().to_string());
    }
    return scope.set(kDatasetAvailable, false, reason::kClaimNotFound,
                     std::string(field) + ".claimName: " + where +
                         " does not exist; create it in the policy's namespace or name another");
  }
  scope.dataset = Json{{kind, {{"claimName", source.claim_name}, {"path", source.path}}}};
  scope.set(kDatasetAvailable, true, reason::kDatasetFound,
            where + ", path " + source.path + "; change spec.dataset.revision when its content changes");
}

}  // namespace

Status check_prompts(std::string_view text) {
  std::size_t line_number = 0, lines = 0, wrong = 0;
  std::string examples;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ++lines;
    if (const char* what = wrong_with_line(line)) {
      if (++wrong <= 3)
        examples += (examples.empty() ? "line " : "; line ") + std::to_string(line_number) + " " + what;
    }
  }
  if (lines == 0)
    return failure(Code::kInvalid, "it is empty; JSON lines with \"prompt\" or \"messages\" are needed");
  if (wrong * 20 > lines)
    return failure(Code::kInvalid, std::to_string(wrong) + " of " + std::to_string(lines) +
                                       " lines are not prompts (at most 5 % may be): " + examples);
  return {};
}

void find_dataset(Scope& scope) {
  const Dataset& dataset = scope.policy.spec.dataset;
  if (dataset.config_map) return find_config_map(scope, *dataset.config_map);
  if (dataset.persistent_volume_claim)
    return find_claim(scope, *dataset.persistent_volume_claim, "spec.dataset.persistentVolumeClaim",
                      "persistentVolumeClaim");
  if (dataset.trace) return find_claim(scope, *dataset.trace, "spec.dataset.trace", "trace");
  scope.dataset = Json{{"sha256", dataset.url->sha256}};
  scope.set(kDatasetAvailable, true, reason::kDatasetFound,
            dataset.url->url + ", sha256 " + dataset.url->sha256.substr(0, 10) +
                "; the calibration Job downloads and checks it");
}

}  // namespace eldr::op
