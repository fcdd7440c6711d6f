// SPDX-License-Identifier: Apache-2.0
// HTTP by libcurl: keep-alive connections, http and https, no other protocol.
#pragma once

#include <memory>

#include "calibrator/collect/http_transport.h"
#include "calibrator/dataset/source.h"

namespace eldr::calibrator {

/// Once, in main, before any thread.
void init_curl();

std::unique_ptr<HttpTransport> make_curl_transport();

/// GET of a data set: follows up to five redirects, ends when nothing comes for a minute.
Download make_curl_download();

}  // namespace eldr::calibrator
