#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of eldr-router per request (user and system), against workers that answer at once.

    bench/router/cpu_per_request.py [--router build/bin/eldr-router] [--requests 2000] [--clients 8]

For bodies of 1, 32 and 220 KB: requests go over kept-alive connections through both legs; the router's CPU time
is read from /proc before and after. The load generator and the workers are other processes, so that their cost
does not count, and the figure does not depend on how busy the machine is.
"""

import argparse
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

PREFILL = (
    b'{"id":"cmpl-1","choices":[{"finish_reason":"length","index":0,"text":"a"}],"kv_transfer_params":'
    b'{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[[1,2,3,4]],"remote_engine_id":"e",'
    b'"remote_host":"127.0.0.1","remote_port":5600,"tp_size":1}}'
)
DECODE = (
    b'{"id":"cmpl-2","choices":[{"index":0,"text":"out"}],"usage":{"prompt_tokens":7,"completion_tokens":1}}'
)


def read_message(connection, pending):
    """One message with a Content-Length; returns what came after it, or None at the end."""
    while b"\r\n\r\n" not in pending:
        data = connection.recv(1 << 18)
        if not data:
            return None
        pending += data
    head, _, rest = pending.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    have = len(rest)
    if have > length:
        return rest[length:]
    while have < length:
        data = connection.recv(1 << 18)
        if not data:
            return None
        have += len(data)
    return b""


def serve(listener, body):
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    ) + body

    def connection_thread(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pending = b""
        while (pending := read_message(connection, pending)) is not None:
            connection.sendall(answer)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=connection_thread, args=(connection,), daemon=True).start()


def worker(body):
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    process = multiprocessing.Process(target=serve, args=(listener, body), daemon=True)
    process.start()
    return listener.getsockname()[1]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_clients(port, body, clients, each):
    request = (
        b"POST /v1/completions HTTP/1.1\r\nHost: router\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(body)
    ) + body
    failed = []

    def client():
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pending = b""
        for _ in range(each):
            connection.sendall(request)
            while b"\r\n\r\n" not in pending:
                data = connection.recv(1 << 16)
                if not data:
                    failed.append("closed")
                    return
                pending += data
            if not pending.startswith(b"HTTP/1.1 200"):
                failed.append(pending[:200])
                return
            pending = read_message(connection, pending)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit(f"a request failed: {failed[0]}")


def body_of(size):
    text = 'The quick brown fox said: \\"jump\\" over the lazy d\u00f6g.\\n'
    prompt = (text * (size // len(text.encode()) + 1)).encode()[: size - 60]
    prompt = prompt.decode(errors="ignore").rstrip("\\").encode()
    return b'{"model":"m","prompt":"' + prompt + b'","max_tokens":16,"temperature":0.7}'


def main():
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--router", default="build/bin/eldr-router")
    arguments.add_argument("--requests", type=int, default=2000)
    arguments.add_argument("--clients", type=int, default=8)
    options = arguments.parse_args()

    prefill, decode = worker(PREFILL), [worker(DECODE), worker(DECODE)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(
            f"listen: 127.0.0.1:{port}\nadmin: 127.0.0.1:0\nthreads: 1\nloadPollSeconds: 0\n"
            f'prefill: [{{url: "http://127.0.0.1:{prefill}"}}]\n'
            f'decode: [{", ".join(f"""{{url: "http://127.0.0.1:{d}"}}""" for d in decode)}]\n'
        )
        config.flush()
        router = subprocess.Popen([options.router, "--config", config.name, "--log-level", "warn"])
        try:
            for _ in range(200):
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            print(f"{'body':>8} {'requests':>9} {'CPU per request':>16}")
            for size in (1_000, 32_000, 220_000):
                body = body_of(size)
                each = max(1, options.requests // options.clients)
                run_clients(port, body, options.clients, max(1, each // 10))
                before = cpu_seconds(router.pid)
                run_clients(port, body, options.clients, each)
                spent = cpu_seconds(router.pid) - before
                print(
                    f"{size // 1000:>5} KB {each * options.clients:>9} {spent / (each * options.clients) * 1e6:>13.0f} us",
                    flush=True,
                )
        finally:
            router.terminate()
            router.wait()


if __name__ == "__main__":
    main()
