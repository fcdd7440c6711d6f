// SPDX-License-Identifier: Apache-2.0
#include "router/protocol/legs.h"

#include <vector>

#include <simdjson.h>

namespace eldr::router {
namespace {

using What = JsonEdit::What;
constexpr std::string_view kTransferKey = "kv_transfer_params";

std::string transfer_request(std::string_view wanted_layers) {
  std::string text = R"({"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,)"
                     R"("remote_block_ids":null,"remote_host":null,"remote_port":null)";
  if (!wanted_layers.empty()) (text += R"(,"eldr":{"layers":)").append(wanted_layers) += '}';
  text += '}';
  return text;
}

/// simdjson's error as the project's, with the field's name.
tl::unexpected<Error> bad_field(std::string_view field, simdjson::error_code error) {
  return failure(Code::kInvalid, "eldr." + std::string(field) + ": " + simdjson::error_message(error));
}

template <class T>
Status read_number(simdjson::ondemand::object& object, const char* field, T& into) {
  const auto error = object[field].get(into);
  if (error) return bad_field(field, error);
  return {};
}

Status read_layers(simdjson::ondemand::object& object, std::vector<std::int64_t>& layers) {
  simdjson::ondemand::array list;
  if (const auto error = object["layers"].get(list)) return bad_field("layers", error);
  for (auto element : list) {
    std::int64_t layer = 0;
    if (const auto error = element.get(layer)) return bad_field("layers", error);
    if (layers.size() == signature::kMaxLayers)
      return failure(Code::kInvalid, "eldr.layers: more than 512 layers");
    layers.push_back(layer);
  }
  return {};
}

Status read_wire(simdjson::ondemand::object& object, signature::WireCounts& wire) {
  if (auto status = read_number(object, "v", wire.version); !status) return status;
  if (auto status = read_number(object, "experts", wire.experts); !status) return status;
  if (auto status = read_layers(object, wire.layers); !status) return status;
  if (const auto error = object["dtype"].get(wire.dtype)) return bad_field("dtype", error);
  if (const auto error = object["counts"].get(wire.counts_base64)) return bad_field("counts", error);
  if (auto status = read_number(object, "tokens", wire.tokens); !status) return status;
  return read_number(object, "counted", wire.counted);
}

}  // namespace

SplicedBody prefill_body(const JsonObject& body, Api api, std::string_view wanted_layers) {
  std::vector<JsonEdit> edits;
  edits.reserve(6);
  edits.push_back({"max_tokens", What::kSet, "1"});
  edits.push_back({"max_completion_tokens", api == Api::kChat ? What::kSet : What::kReplaceIfThere, "1"});
  edits.push_back({"stream", What::kSet, "false"});
  edits.push_back({"stream_options", What::kRemove, {}});
  edits.push_back({"min_tokens", What::kRemove, {}});
  edits.push_back({kTransferKey, What::kSet, transfer_request(wanted_layers)});
  return splice(body, edits);
}

SplicedBody decode_body(const JsonObject& body, std::string_view transfer) {
  std::vector<JsonEdit> edits;
  if (transfer.empty())
    edits.push_back({kTransferKey, What::kRemove, {}});
  else
    edits.push_back({kTransferKey, What::kSet, std::string(transfer)});
  return splice(body, edits);
}

Result<PrefillAnswer> read_prefill_answer(std::string_view answer) {
  const auto object = JsonObject::scan(answer);
  if (!object) return failure(object.error());
  PrefillAnswer result;
  const auto* member = object->find(kTransferKey);
  if (member == nullptr) return result;
  const auto raw = object->raw_value(*member);
  if (kind_of(raw) == JsonKind::kNull) return result;
  const auto transfer = JsonObject::scan(raw);
  if (!transfer) return failure(transfer.error().with_context(kTransferKey));
  if (const auto* eldr = transfer->find("eldr")) result.eldr = std::string(transfer->raw_value(*eldr));
  result.transfer = splice(*transfer, {{"eldr", What::kRemove, {}}}).to_string();
  return result;
}

Result<signature::ExpertCounts> read_eldr_counts(std::string_view raw) {
  static thread_local simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(raw);
  simdjson::ondemand::document document;
  if (const auto error = parser.iterate(padded).get(document)) return bad_field("", error);
  simdjson::ondemand::object object;
  if (const auto error = document.get_object().get(object)) return bad_field("", error);
  signature::WireCounts wire;
  if (auto status = read_wire(object, wire); !status) return failure(status.error());
  return signature::decode_wire_counts(wire);
}

}  // namespace eldr::router
