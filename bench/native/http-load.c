/*
 * Load client for requests: C keep-alive connections, one request in flight on each, no pipelining.
 *
 *   http-load --port P --connections 64 --warm ms --measure ms [--method GET] [--path /] [--header "name: value"]… [--body text] [--pids 1,2]
 *
 * Every answer must be a 200 with a content-length. Prints one JSON line.
 */
#include "common.h"

struct connection {
  int fd;
  uint64_t sent_at;
  size_t received;
  /* Bytes of the whole answer; 0 while its header block is incomplete. */
  size_t expected;
  char bytes[65536];
};

static int port, connection_count = 64, warm_ms = 200, measure_ms = 1000;
static const char *method = "GET", *path = "/", *body = "", *pids = "";
static char headers[8192], request[65536];
static size_t request_size, answer_size;
static int epoll;
static struct samples latencies;
static uint64_t answered, wrong;
static int sampling;

static void ask(struct connection *c) {
  c->received = c->expected = 0;
  c->sent_at = now_ns();
  send_all(c->fd, request, request_size);
}

static size_t whole_size(struct connection *c) {
  c->bytes[c->received] = 0;
  char *end = strstr(c->bytes, "\r\n\r\n");
  if (end == NULL) return 0;
  char *length = strcasestr(c->bytes, "\r\ncontent-length:");
  if (strncmp(c->bytes, "HTTP/1.1 200", 12) != 0 || length == NULL || length > end) {
    if (wrong == 0) fprintf(stderr, "unexpected answer: %.400s\n", c->bytes);
    wrong += 1;
    exit(1);
  }
  return (size_t)(end + 4 - c->bytes) + strtoul(length + 17, NULL, 10);
}

static void receive(struct connection *c) {
  ssize_t size = recv(c->fd, c->bytes + c->received, sizeof c->bytes - 1 - c->received, 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    fprintf(stderr, "connection closed by the server\n");
    exit(1);
  }
  c->received += (size_t)size;
  if (c->expected == 0) c->expected = whole_size(c);
  if (c->expected == 0 || c->received < c->expected) return;
  answered += 1;
  answer_size = c->expected;
  if (sampling) sample(&latencies, now_ns() - c->sent_at);
  ask(c);
}

static void run_for(int ms) {
  static struct epoll_event events[256];
  uint64_t until = now_ns() + (uint64_t)ms * 1000000ull;
  while (now_ns() < until) {
    int count = epoll_wait(epoll, events, 256, 5);
    for (int i = 0; i < count; i += 1) receive(events[i].data.ptr);
  }
}

static void read_options(int count, char **values) {
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = values[i], *value = values[i + 1];
    if (strcmp(name, "--port") == 0) port = atoi(value);
    else if (strcmp(name, "--connections") == 0) connection_count = atoi(value);
    else if (strcmp(name, "--warm") == 0) warm_ms = atoi(value);
    else if (strcmp(name, "--measure") == 0) measure_ms = atoi(value);
    else if (strcmp(name, "--method") == 0) method = value;
    else if (strcmp(name, "--path") == 0) path = value;
    else if (strcmp(name, "--body") == 0) body = value;
    else if (strcmp(name, "--pids") == 0) pids = value;
    else if (strcmp(name, "--header") == 0) snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s\r\n", value);
    else {
      fprintf(stderr, "unknown option %s\n", name);
      exit(2);
    }
  }
}

int main(int count, char **values) {
  read_options(count, values);
  char length[64] = "";
  if (*body != 0) snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
  request_size = (size_t)snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s%s\r\n%s", method, path, port,
                                  headers, length, body);
  epoll = epoll_create1(EPOLL_CLOEXEC);
  struct connection *connections = calloc((size_t)connection_count, sizeof *connections);
  for (int i = 0; i < connection_count; i += 1) {
    connections[i].fd = connect_loopback(port, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[i]};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event) != 0) die("epoll_ctl");
    ask(&connections[i]);
  }
  run_for(warm_ms);
  sampling = 1;
  uint64_t from = now_ns(), answered_from = answered, cpu_from = processes_cpu_ns(pids), own_from = own_cpu_ns();
  run_for(measure_ms);
  uint64_t elapsed = now_ns() - from, requests = answered - answered_from;
  uint64_t cpu = processes_cpu_ns(pids) - cpu_from, own = own_cpu_ns() - own_from;
  sort_samples(&latencies);
  printf("{\"requests\":%llu,\"seconds\":%.6f,\"cpuNs\":%llu,\"clientCpuNs\":%llu,\"p50Ms\":%.4f,\"p99Ms\":%.4f,\"answerBytes\":%zu}\n",
         (unsigned long long)requests, (double)elapsed / 1e9, (unsigned long long)cpu, (unsigned long long)own,
         percentile_ms(&latencies, 0.5), percentile_ms(&latencies, 0.99), answer_size);
  return 0;
}
