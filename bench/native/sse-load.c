/*
 * Load client for event streams: N readers on one epoll loop that ask for ticks and count every event of every reader. The
 * latency of an event is the time from asking for its tick to its arrival, the same for every server.
 *
 *   sse-load --port P --connections N [--path /v1/events] [--header "name: value"] [--stalled K] [--pids 1,2]
 *            [--control P | --publish /pub] [--window ticks] [--rate ticks-per-second] [--phase e:warm-ms:measure-ms]… [--hold]
 *
 * Ticks: by one byte each to the control port ('e' one event, 'b' BATCH events), or as POST requests to --publish on the same
 * server (nchan). At most --window ticks are on their way; --rate asks for them at a steady pace instead. After each phase
 * every reader must have received exactly what was asked for (the n-th event of every reader is the n-th asked for). --hold prints {"connected":N} and stays until its input ends.
 * The stalled readers send their request and never read. Prints one JSON line: {"phases":[…]}.
 */
#include "common.h"

#define MAX_PHASES 8
/* Events that can be on their way at once; a power of two. */
#define ASKED (1u << 20)

/* What of an answer comes next: a chunk may begin in the middle of a line. `WHOLE`: a body without chunks. */
enum part { SIZE, DATA, AFTER_DATA, WHOLE };

struct connection {
  int fd;
  enum part part;
  uint64_t chunk_left;
  /* Characters of "data:" seen at the start of the present line; -1: the line is another one. */
  int matched;
  /* -1: the header block is not over; else events counted. */
  int64_t events;
  uint32_t until_sample;
};

struct phase {
  char mode;
  int warm_ms, measure_ms;
};

static struct connection *connections;
static int connection_count = 1, stalled_count, port, control_port, window = 4, rate, hold, phase_count;
static const char *path = "/v1/events", *publish_path, *pids = "";
static char header[2048];
static struct phase phases[MAX_PHASES];
static int epoll, control = -1;
static uint64_t delivered;
/* When event n (from 1) was asked for. */
static uint64_t asked_at[ASKED], asked_events;
static int ready, closed;
static struct samples latencies;
static int sampling;
/* Largest resident size of the first process of --pids seen during the phase. */
static long peak_kib;

/* Counts the lines that start with "data:". */
static void count_events(struct connection *c, const char *bytes, size_t size, uint64_t received_at) {
  static const char wanted[] = "data:";
  const char *at = bytes, *end = bytes + size;
  while (at < end) {
    if (c->matched >= 0) {
      if (*at == wanted[c->matched]) {
        at += 1;
        if (++c->matched < 5) continue;
        c->matched = -1;
        c->events += 1;
        delivered += 1;
        if (sampling && --c->until_sample == 0) {
          c->until_sample = 16;
          sample(&latencies, received_at - asked_at[(uint64_t)c->events % ASKED]);
        }
      } else {
        c->matched = -1;
      }
    }
    at = memchr(at, '\n', (size_t)(end - at));
    if (at == NULL) return;
    at += 1;
    c->matched = 0;
  }
}

static void size_digit(struct connection *c, char digit) {
  if (digit == '\n') c->part = c->chunk_left > 0 ? DATA : AFTER_DATA;
  else if (digit >= '0' && digit <= '9') c->chunk_left = c->chunk_left * 16 + (uint64_t)(digit - '0');
  else if ((digit | 32) >= 'a' && (digit | 32) <= 'f') c->chunk_left = c->chunk_left * 16 + (uint64_t)((digit | 32) - 'a' + 10);
}

static void read_body(struct connection *c, const char *at, size_t left, uint64_t received_at) {
  while (left > 0) {
    size_t used = 1;
    if (c->part == WHOLE || c->part == DATA) {
      used = c->part == DATA && c->chunk_left < left ? (size_t)c->chunk_left : left;
      count_events(c, at, used, received_at);
      c->chunk_left -= c->part == DATA ? used : 0;
      if (c->part == DATA && c->chunk_left == 0) c->part = AFTER_DATA;
    } else if (c->part == SIZE) {
      size_digit(c, *at);
    } else if (*at == '\n') {
      c->part = SIZE;
    }
    at += used;
    left -= used;
  }
}

/* The header block arrives at once. Returns where the body begins. */
static const char *read_head(struct connection *c, char *bytes, size_t size) {
  const char *end = memmem(bytes, size, "\r\n\r\n", 4);
  if (strncmp(bytes, "HTTP/1.1 200", 12) != 0 || end == NULL) {
    fprintf(stderr, "refused: %.*s\n", (int)(size < 300 ? size : 300), bytes);
    exit(1);
  }
  bytes[end - bytes] = 0;
  c->part = strcasestr(bytes, "\r\ntransfer-encoding: chunked") == NULL ? WHOLE : SIZE;
  c->events = 0;
  ready += 1;
  return end + 4;
}

static void receive(struct connection *c) {
  static char bytes[262144];
  ssize_t size = recv(c->fd, bytes, sizeof bytes, 0);
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
    closed += 1;
    close(c->fd);
    c->fd = -1;
    return;
  }
  if (size < 0) return;
  const char *body = c->events < 0 ? read_head(c, bytes, (size_t)size) : bytes;
  read_body(c, body, (size_t)(bytes + size - body), now_ns());
}

static void drain_control(void) {
  char bytes[65536];
  while (recv(control, bytes, sizeof bytes, 0) > 0) {
  }
}

static void turn(int timeout_ms) {
  static struct epoll_event events[256];
  int count = epoll_wait(epoll, events, 256, timeout_ms);
  for (int i = 0; i < count; i += 1) {
    struct connection *c = events[i].data.ptr;
    if (c == NULL) drain_control();
    else if (c->fd >= 0) receive(c);
  }
}

static void connect_one(struct connection *c, int never_reads) {
  char request[4096];
  int size = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n%s\r\n", path,
                      port, header);
  c->fd = connect_loopback(port, 0);
  c->events = -1;
  c->matched = -1;
  send_all(c->fd, request, (size_t)size);
  if (never_reads) return;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0) die("epoll_ctl");
}

static void connect_all(void) {
  uint64_t deadline = now_ns() + 30000000000ull;
  connections = calloc((size_t)(connection_count + stalled_count), sizeof *connections);
  for (int i = 0; i < stalled_count; i += 1) connect_one(&connections[connection_count + i], 1);
  for (int i = 0; i < connection_count; i += 1) {
    connections[i].until_sample = 1 + (uint32_t)i % 16;
    connect_one(&connections[i], 0);
    while (i - ready > 128 && now_ns() < deadline) turn(10);
  }
  while (ready < connection_count && now_ns() < deadline) turn(10);
  if (ready < connection_count) {
    fprintf(stderr, "only %d of %d readers were answered\n", ready, connection_count);
    exit(1);
  }
}

static void publish(char mode) {
  static char request[BATCH * 1024];
  size_t size = 0;
  static uint64_t sequence;
  for (int i = 0; i < (mode == 'b' ? BATCH : 1); i += 1) {
    char body[512];
    sequence += 1;
    int length = snprintf(body, sizeof body,
                          "{\"kind\":\"appserver.running\",\"at\":\"2026-11-21T08:00:00.000Z\",\"workspacePath\":"
                          "\"/home/user/projects/example\",\"data\":{\"pid\":%llu,\"endpoints\":"
                          "{\"appServerWebSocket\":\"ws://127.0.0.1:40123/ws\"}}}",
                          (unsigned long long)(1000 + sequence % 9000));
    size += (size_t)snprintf(request + size, sizeof request - size,
                             "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-EventSource-Event: appserver.running\r\n"
                             "Content-Length: %d\r\n\r\n%s",
                             publish_path, length, body);
  }
  send_all(control, request, size);
}

static void ask(char mode) {
  uint64_t now = now_ns();
  for (int i = 0; i < (mode == 'b' ? BATCH : 1); i += 1) asked_at[++asked_events % ASKED] = now;
  if (publish_path != NULL) publish(mode);
  else send_all(control, &mode, 1);
}

struct progress {
  uint64_t asked_ticks, delivered_before, started_at;
  uint64_t per_tick;
};

static void top_up(const struct phase *p, struct progress *g) {
  if (rate > 0) {
    uint64_t due = (now_ns() - g->started_at) * (uint64_t)rate / 1000000000ull;
    for (; g->asked_ticks < due; g->asked_ticks += 1) ask(p->mode);
    return;
  }
  uint64_t done = (delivered - g->delivered_before) / ((uint64_t)connection_count * g->per_tick);
  for (; g->asked_ticks < done + (uint64_t)window; g->asked_ticks += 1) ask(p->mode);
}

/* Resident memory of the first process of --pids, KiB. */
static long resident_kib(void) {
  char file[64], line[256];
  long value = 0;
  snprintf(file, sizeof file, "/proc/%d/status", atoi(pids));
  FILE *status = fopen(file, "r");
  if (status == NULL) return 0;
  while (fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "VmRSS: %ld", &value) == 1) break;
  fclose(status);
  return value;
}

static void run_for(const struct phase *p, struct progress *g, int ms) {
  uint64_t until = now_ns() + (uint64_t)ms * 1000000ull;
  uint64_t next_look = 0;
  while (now_ns() < until && closed == 0) {
    top_up(p, g);
    turn(rate > 0 ? 1 : 5);
    if (now_ns() < next_look) continue;
    next_look = now_ns() + 20000000ull;
    long kib = resident_kib();
    if (kib > peak_kib) peak_kib = kib;
  }
}

static void run_phase(const struct phase *p, int first) {
  struct progress g = {.delivered_before = delivered, .started_at = now_ns(), .per_tick = p->mode == 'b' ? BATCH : 1};
  int64_t events_before = connections[0].events;
  latencies.count = 0;
  peak_kib = 0;
  run_for(p, &g, p->warm_ms);

  sampling = 1;
  uint64_t from = now_ns(), delivered_from = delivered, cpu_from = processes_cpu_ns(pids), own_from = own_cpu_ns();
  run_for(p, &g, p->measure_ms);
  uint64_t elapsed = now_ns() - from, events = delivered - delivered_from;
  uint64_t cpu = processes_cpu_ns(pids) - cpu_from, own = own_cpu_ns() - own_from;
  sampling = 0;

  /* All that was asked for has to arrive; two seconds without one event and it never will. */
  uint64_t wanted = g.asked_ticks * g.per_tick, seen = delivered, moved_at = now_ns();
  while (delivered - g.delivered_before < wanted * (uint64_t)connection_count && now_ns() < moved_at + 2000000000ull && closed == 0) {
    turn(5);
    if (delivered == seen) continue;
    seen = delivered;
    moved_at = now_ns();
  }
  int incomplete = 0;
  for (int i = 0; i < connection_count; i += 1)
    if (connections[i].events != events_before + (int64_t)wanted) incomplete += 1;

  sort_samples(&latencies);
  printf("%s{\"mode\":\"%s\",\"events\":%llu,\"seconds\":%.6f,\"cpuNs\":%llu,\"clientCpuNs\":%llu,\"p50Ms\":%.4f,\"p99Ms\":%.4f,"
         "\"samples\":%zu,\"asked\":%llu,\"incomplete\":%d,\"closed\":%d,\"peakRssKiB\":%ld}",
         first ? "" : ",", p->mode == 'b' ? "batch" : "each", (unsigned long long)events, (double)elapsed / 1e9,
         (unsigned long long)cpu, (unsigned long long)own, percentile_ms(&latencies, 0.5), percentile_ms(&latencies, 0.99),
         latencies.count, (unsigned long long)wanted, incomplete, closed, peak_kib);
}

static void read_options(int count, char **values) {
  for (int i = 1; i < count; i += 1) {
    const char *name = values[i], *value = i + 1 < count ? values[i + 1] : "";
    if (strcmp(name, "--hold") == 0) {
      hold = 1;
      continue;
    }
    i += 1;
    if (strcmp(name, "--port") == 0) port = atoi(value);
    else if (strcmp(name, "--control") == 0) control_port = atoi(value);
    else if (strcmp(name, "--publish") == 0) publish_path = value;
    else if (strcmp(name, "--connections") == 0) connection_count = atoi(value);
    else if (strcmp(name, "--stalled") == 0) stalled_count = atoi(value);
    else if (strcmp(name, "--path") == 0) path = value;
    else if (strcmp(name, "--pids") == 0) pids = value;
    else if (strcmp(name, "--window") == 0) window = atoi(value);
    else if (strcmp(name, "--rate") == 0) rate = atoi(value);
    else if (strcmp(name, "--header") == 0) snprintf(header + strlen(header), sizeof header - strlen(header), "%s\r\n", value);
    else if (strcmp(name, "--phase") == 0 && phase_count < MAX_PHASES) {
      struct phase *p = &phases[phase_count++];
      if (sscanf(value, "%c:%d:%d", &p->mode, &p->warm_ms, &p->measure_ms) == 3) continue;
      fprintf(stderr, "not a phase: %s\n", value);
      exit(2);
    } else {
      fprintf(stderr, "unknown option %s\n", name);
      exit(2);
    }
  }
}

int main(int count, char **values) {
  read_options(count, values);
  raise_fd_limit();
  epoll = epoll_create1(EPOLL_CLOEXEC);
  connect_all();
  if (control_port > 0 || publish_path != NULL) {
    control = connect_loopback(publish_path != NULL ? port : control_port, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, control, &event) != 0) die("epoll_ctl");
  }
  if (hold) {
    printf("{\"connected\":%d}\n", ready);
    fflush(stdout);
    char ignored[64];
    while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
    }
    return 0;
  }
  printf("{\"phases\":[");
  for (int i = 0; i < phase_count; i += 1) run_phase(&phases[i], i == 0);
  printf("]}\n");
  return 0;
}
