/*
 * Load client for chat completions: C keep-alive connections, one request in flight on each, the next as soon as an answer
 * is whole. Every answer is checked to the last letter.
 *
 *   chat-load --port P --connections C --body text --text expected --warm ms --measure ms
 *             [--chunks N] [--path /v1/chat/completions] [--header "name: value"]… [--pids 1,2] [--beside 3,4] [--spread ms]
 *
 * --chunks N: answers are streams of N pieces of text, which together say --text, then finish_reason "stop" and [DONE].
 * Without it they are documents that say --text. With --path /v1/responses, answers are those of the Responses API. --pids: processes whose CPU time counts, the first one's memory too;
 * --beside: others whose CPU time is told. --spread: the first requests are sent over this time, so that paced answers do
 * not come in step. Prints one JSON line.
 */
#include "common.h"

#define LINE_BYTES 65536

enum framing { IN_HEAD, IN_LENGTH, IN_SIZE, IN_CHUNK, AFTER_CHUNK, IN_TRAILER };

struct connection {
  int fd;
  enum framing framing;
  /* Bytes left of the body, or of the chunk of it (RFC 9112, section 7.1). */
  size_t left;
  uint64_t sent_at, first_at;
  /* Since the measurement began. */
  int is_sampled;
  /* Characters of the text that have come, and pieces they came in. */
  size_t said;
  int pieces, is_finished, is_done;
  /* The header block, then the line of the stream, or the document, as far as it has come. */
  size_t length;
  char bytes[LINE_BYTES];
};

static int port, connection_count = 1, warm_ms = 300, measure_ms = 1000, spread_ms, chunks;
static const char *path = "/v1/chat/completions", *body = "", *text = "", *pids = "", *beside = "";
static char headers[8192], request[65536];
static size_t request_size, text_size;
static int epoll, sampling;
static uint64_t answers, pieces;
static struct samples firsts, wholes;
static long peak_kib;

static void wrong(const char *what, const char *bytes, size_t size) {
  fprintf(stderr, "%s: %.*s\n", what, (int)(size < 600 ? size : 600), bytes);
  exit(1);
}

static void ask(struct connection *c) {
  c->framing = IN_HEAD;
  c->length = c->said = c->left = 0;
  c->pieces = c->is_finished = c->is_done = 0;
  c->first_at = 0;
  c->is_sampled = sampling;
  c->sent_at = now_ns();
  send_all(c->fd, request, request_size);
}

/* The text after `key`, up to the next quotation mark: what is said here needs no escapes. NULL when it is null or missing. */
static const char *string_after(const char *from, size_t size, const char *key, size_t *length) {
  const char *at = memmem(from, size, key, strlen(key)), *end = from + size;
  if (at == NULL) return NULL;
  for (at += strlen(key); at < end && (*at == ':' || *at == ' ');) at += 1;
  if (at >= end || *at != '"') return NULL;
  at += 1;
  const char *close = memchr(at, '"', (size_t)(end - at));
  if (close == NULL) return NULL;
  *length = (size_t)(close - at);
  return at;
}

/* What is said must continue the expected text. */
static void hear(struct connection *c, const char *words, size_t size) {
  if (c->said + size > text_size || memcmp(text + c->said, words, size) != 0) wrong("not the expected text", words, size);
  c->said += size;
  if (size == 0) return;
  if (c->first_at == 0) c->first_at = now_ns();
  c->pieces += 1;
  pieces += 1;
}

static int starts_with(const char *from, size_t size, const char *words) {
  return size >= strlen(words) && memcmp(from, words, strlen(words)) == 0;
}

/* The Responses API: text in deltas or in output items, and an end event or a status. */
static void hear_response(struct connection *c, const char *from, size_t size) {
  size_t length;
  if (chunks == 0) {
    const char *words = string_after(from, size, "\"output_text\",\"text\"", &length);
    if (words != NULL) hear(c, words, length);
    const char *status = string_after(from, size, "\"status\"", &length);
    if (status == NULL || length != 9 || memcmp(status, "completed", 9) != 0) wrong("not the expected end", from, size);
    c->is_finished = 1;
  } else if (starts_with(from, size, "{\"type\":\"response.output_text.delta\"")) {
    const char *words = string_after(from, size, "\"delta\"", &length);
    if (words != NULL) hear(c, words, length);
  } else if (starts_with(from, size, "{\"type\":\"response.completed\"")) {
    c->is_finished = c->is_done = 1;
  }
}

static void hear_from(struct connection *c, const char *from, size_t size) {
  size_t length;
  if (strcmp(path, "/v1/responses") == 0) {
    hear_response(c, from, size);
    return;
  }
  const char *words = string_after(from, size, "\"content\"", &length);
  if (words != NULL) hear(c, words, length);
  const char *reason = string_after(from, size, "\"finish_reason\"", &length);
  if (reason == NULL) return;
  if (length != 4 || memcmp(reason, "stop", 4) != 0) wrong("not the expected end", from, size);
  c->is_finished = 1;
}

static void take_line(struct connection *c, const char *line, size_t size) {
  if (size > 0 && line[size - 1] == '\r') size -= 1;
  if (size < 6 || memcmp(line, "data: ", 6) != 0) return;
  if (size == 12 && memcmp(line + 6, "[DONE]", 6) == 0) c->is_done = 1;
  else hear_from(c, line + 6, size - 6);
}

static void keep(struct connection *c, const char *bytes, size_t size) {
  if (c->length + size >= LINE_BYTES) wrong("too long", c->bytes, c->length);
  memcpy(c->bytes + c->length, bytes, size);
  c->length += size;
}

/* Bytes of the body, without its framing. */
static void take_body(struct connection *c, const char *bytes, size_t size) {
  if (chunks == 0) {
    keep(c, bytes, size);
    return;
  }
  while (size > 0) {
    const char *end = memchr(bytes, '\n', size);
    size_t length = end == NULL ? size : (size_t)(end - bytes);
    if (end != NULL && c->length == 0) take_line(c, bytes, length);
    else {
      keep(c, bytes, length);
      if (end != NULL) {
        take_line(c, c->bytes, c->length);
        c->length = 0;
      }
    }
    if (end != NULL) length += 1;
    bytes += length;
    size -= length;
  }
}

static void end_answer(struct connection *c) {
  if (chunks == 0) {
    hear_from(c, c->bytes, c->length);
    c->is_done = 1;
  }
  int is_whole = c->said == text_size && c->is_finished && c->is_done && (chunks == 0 || c->pieces == chunks);
  if (!is_whole) {
    fprintf(stderr, "an answer that is not whole: %zu of %zu characters in %d pieces, finish %d, done %d\n", c->said, text_size,
            c->pieces, c->is_finished, c->is_done);
    exit(1);
  }
  answers += 1;
  if (sampling && c->is_sampled) {
    sample(&firsts, c->first_at - c->sent_at);
    sample(&wholes, now_ns() - c->sent_at);
  }
  ask(c);
}

/* Reads the header block once it is complete. Gives back how many of the bytes kept so far are body. */
static size_t take_head(struct connection *c) {
  c->bytes[c->length] = 0;
  char *end = strstr(c->bytes, "\r\n\r\n");
  if (end == NULL) return 0;
  if (strncmp(c->bytes, "HTTP/1.1 200", 12) != 0) wrong("unexpected answer", c->bytes, c->length);
  char *length = strcasestr(c->bytes, "\r\ncontent-length:"), *coding = strcasestr(c->bytes, "\r\ntransfer-encoding: chunked");
  size_t rest = c->length - (size_t)(end + 4 - c->bytes);
  if (coding != NULL && coding < end) c->framing = IN_SIZE;
  else if (length != NULL && length < end) {
    c->framing = IN_LENGTH;
    c->left = strtoul(length + 17, NULL, 10);
  } else wrong("an answer without an end", c->bytes, c->length);
  c->length = 0;
  return rest;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Takes the next bytes of an answer; gives back how many of them it has used. */
static size_t take(struct connection *c, const char *bytes, size_t size) {
  size_t some = smaller(c->left, size);
  switch (c->framing) {
    case IN_HEAD: {
      keep(c, bytes, size);
      size_t rest = take_head(c);
      if (c->framing == IN_LENGTH && c->left == 0) end_answer(c);
      return size - rest;
    }
    case IN_LENGTH:
      take_body(c, bytes, some);
      c->left -= some;
      if (c->left == 0) end_answer(c);
      return some;
    case IN_SIZE:
      if (*bytes == '\n') c->framing = c->left == 0 ? IN_TRAILER : IN_CHUNK;
      else if (*bytes != '\r') {
        int digit = hex_digit(*bytes);
        if (digit < 0) wrong("not the size of a chunk", bytes, size);
        c->left = c->left * 16 + (size_t)digit;
      }
      return 1;
    case IN_CHUNK:
      take_body(c, bytes, some);
      c->left -= some;
      if (c->left == 0) c->framing = AFTER_CHUNK;
      return some;
    case AFTER_CHUNK:
      if (*bytes == '\n') c->framing = IN_SIZE;
      return 1;
    case IN_TRAILER:
      if (*bytes == '\n') end_answer(c);
      return 1;
  }
  return size;
}

static void receive(struct connection *c) {
  static char bytes[262144];
  ssize_t got = recv(c->fd, bytes, sizeof bytes, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) wrong("closed in the middle of an answer", c->bytes, c->length);
  for (size_t at = 0; at < (size_t)got;) at += take(c, bytes + at, (size_t)got - at);
}

static void look_at_memory(void) {
  char file[64], line[256];
  long kib = 0;
  snprintf(file, sizeof file, "/proc/%d/status", atoi(pids));
  FILE *status = fopen(file, "r");
  if (status == NULL) return;
  while (fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "VmRSS: %ld kB", &kib) == 1 && kib > peak_kib) peak_kib = kib;
  fclose(status);
}

static void run_for(int ms, struct connection *connections, int *asked) {
  static struct epoll_event events[512];
  uint64_t from = now_ns(), until = from + (uint64_t)ms * 1000000ull;
  for (uint64_t now = from; now < until; now = now_ns()) {
    while (*asked < connection_count && now - from >= (uint64_t)spread_ms * 1000000ull * (uint64_t)*asked / (uint64_t)connection_count) {
      ask(&connections[*asked]);
      *asked += 1;
    }
    int count = epoll_wait(epoll, events, 512, *asked < connection_count ? 1 : 5);
    for (int i = 0; i < count; i += 1) receive(events[i].data.ptr);
  }
}

static void read_options(int count, char **values) {
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = values[i], *value = values[i + 1];
    if (strcmp(name, "--port") == 0) port = atoi(value);
    else if (strcmp(name, "--connections") == 0) connection_count = atoi(value);
    else if (strcmp(name, "--chunks") == 0) chunks = atoi(value);
    else if (strcmp(name, "--warm") == 0) warm_ms = atoi(value);
    else if (strcmp(name, "--measure") == 0) measure_ms = atoi(value);
    else if (strcmp(name, "--spread") == 0) spread_ms = atoi(value);
    else if (strcmp(name, "--path") == 0) path = value;
    else if (strcmp(name, "--body") == 0) body = value;
    else if (strcmp(name, "--text") == 0) text = value;
    else if (strcmp(name, "--pids") == 0) pids = value;
    else if (strcmp(name, "--beside") == 0) beside = value;
    else if (strcmp(name, "--header") == 0) snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s\r\n", value);
    else {
      fprintf(stderr, "unknown option %s\n", name);
      exit(2);
    }
  }
}

int main(int count, char **values) {
  read_options(count, values);
  raise_fd_limit();
  text_size = strlen(text);
  request_size = (size_t)snprintf(request, sizeof request,
                                  "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s", path,
                                  port, headers, strlen(body), body);
  epoll = epoll_create1(EPOLL_CLOEXEC);
  struct connection *connections = calloc((size_t)connection_count, sizeof *connections);
  if (connections == NULL) die("calloc");
  for (int i = 0; i < connection_count; i += 1) {
    connections[i].fd = connect_loopback(port, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[i]};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event) != 0) die("epoll_ctl");
  }
  int asked = 0;
  run_for(warm_ms > spread_ms ? warm_ms : spread_ms + 1, connections, &asked);

  sampling = 1;
  uint64_t from = now_ns(), answers_from = answers, pieces_from = pieces;
  uint64_t cpu_from = processes_cpu_ns(pids), beside_from = processes_cpu_ns(beside), own_from = own_cpu_ns();
  for (int part = 0; part < 4; part += 1) {
    run_for(measure_ms / 4, connections, &asked);
    look_at_memory();
  }
  double seconds = (double)(now_ns() - from) / 1e9;
  uint64_t cpu = processes_cpu_ns(pids) - cpu_from, others = processes_cpu_ns(beside) - beside_from, own = own_cpu_ns() - own_from;
  sort_samples(&firsts);
  sort_samples(&wholes);
  printf("{\"answers\":%llu,\"chunks\":%llu,\"seconds\":%.6f,\"cpuNs\":%llu,\"besideCpuNs\":%llu,\"clientCpuNs\":%llu,"
         "\"samples\":%zu,\"firstP50Ms\":%.4f,\"firstP99Ms\":%.4f,\"p50Ms\":%.4f,\"p99Ms\":%.4f,\"peakRssKiB\":%ld}\n",
         (unsigned long long)(answers - answers_from), (unsigned long long)(pieces - pieces_from), seconds, (unsigned long long)cpu,
         (unsigned long long)others, (unsigned long long)own, firsts.count, percentile_ms(&firsts, 0.5), percentile_ms(&firsts, 0.99),
         percentile_ms(&wholes, 0.5), percentile_ms(&wholes, 0.99), peak_kib);
  return 0;
}
