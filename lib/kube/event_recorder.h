// SPDX-License-Identifier: Apache-2.0
// Events that `kubectl describe` shows (events.k8s.io/v1). Repetitions become a series of one event object.
// Never blocks its caller: events go through a bounded queue to a thread of their own, and are dropped, and
// counted, when it is full or the API server refuses them.
//
// Thread-safety: all methods may be called from any thread. The client and the clock must outlive it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/kube/client.h"
#include "lib/kube/json.h"
#include "lib/kube/resource.h"

namespace eldr::kube {

enum class EventType { kNormal, kWarning };

/// What an event is about. reference_to() makes one from an object.
struct ObjectReference {
  std::string api_version, kind, ns, name, uid, resource_version;
};
ObjectReference reference_to(const Resource& resource, const Json& object);

struct EventRecorderOptions {
  std::string controller{};  ///< reportingController: "eldr.dev/operator"
  std::string instance{};    ///< reportingInstance: the pod's name
  std::size_t queue = 1000;
  std::size_t series = 4096;                ///< distinct events remembered
  std::chrono::seconds series_window{360};  ///< a repetition within this joins the series
  std::chrono::seconds series_refresh{10};  ///< a series' count is written at most this often
};

class EventRecorder {
 public:
  EventRecorder(const Client& client, EventRecorderOptions options, const Clock& clock);
  ~EventRecorder();  ///< like stop(0)
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void start();
  /// Writes what is queued for at most `grace`, then ends the thread.
  void stop(std::chrono::milliseconds grace);

  /// `reason` is CamelCase and why ("CalibrationStarted"), `action` CamelCase and what was done
  /// ("Calibrating"), `note` a sentence for people; longer ones are cut at 128, 128 and 1024 bytes.
  void record(const ObjectReference& regarding, EventType type, const std::string& reason,
              const std::string& action, const std::string& note);

  std::uint64_t dropped() const;  ///< events lost: queue full, or refused by the server
  std::uint64_t written() const;  ///< API writes that succeeded

 private:
  struct Private;
  std::unique_ptr<Private> private_;
};

}  // namespace eldr::kube
