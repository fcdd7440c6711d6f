// SPDX-License-Identifier: Apache-2.0

// probe is what the pods of the self-test run: "probe serve PORT" answers each connection with a line, "probe
// ask HOST PORT" prints the answer, tried for 30 s, "probe say WORD" prints a word. It is linked dynamically
// on purpose, so that its image needs shared libraries.
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int resolve(const char* host, const char* port, int flags, struct addrinfo** found) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
  int error = getaddrinfo(host, port, &hints, found);
  if (error != 0) fprintf(stderr, "probe: %s: %s\n", host ? host : port, gai_strerror(error));
  return error;
}

static int serve(const char* port) {
  struct addrinfo* address;
  if (resolve(NULL, port, AI_PASSIVE, &address) != 0) return 1;
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, address->ai_addr, address->ai_addrlen) != 0 || listen(listener, 16) != 0)
    return perror("probe"), 1;
  static const char line[] = "hello from the probe\n";
  for (;;) {
    int connection = accept(listener, NULL, NULL);
    if (connection < 0) continue;
    if (write(connection, line, sizeof line - 1) < 0) perror("probe");
    close(connection);
  }
}

static int ask_once(const char* host, const char* port) {
  struct addrinfo* address;
  if (resolve(host, port, 0, &address) != 0) return 1;
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  char answer[256];
  ssize_t length = -1;
  if (connect(connection, address->ai_addr, address->ai_addrlen) == 0)
    length = read(connection, answer, sizeof answer);
  if (length <= 0) perror("probe");
  if (length > 0) fwrite(answer, 1, (size_t)length, stdout);
  close(connection);
  freeaddrinfo(address);
  return length > 0 ? 0 : 1;
}

int main(int count, char** words) {
  signal(SIGTERM, _exit);  // process 1 of a container would ignore it
  if (count == 3 && strcmp(words[1], "serve") == 0) return serve(words[2]);
  if (count == 3 && strcmp(words[1], "say") == 0) return puts(words[2]) < 0;
  if (count == 4 && strcmp(words[1], "ask") == 0) {
    for (int tries = 0; tries < 30; ++tries, sleep(1))
      if (ask_once(words[2], words[3]) == 0) return 0;
    return 1;
  }
  fputs("usage: probe serve PORT | ask HOST PORT | say WORD\n", stderr);
  return 64;
}
