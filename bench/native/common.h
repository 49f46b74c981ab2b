/*
 * What the three native programs share: time, sockets, CPU time of other processes, percentiles.
 * Linux only (epoll, /proc). Built by bench/native.ts.
 */
#ifndef ORATORIO_BENCH_COMMON_H
#define ORATORIO_BENCH_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Events of one batched tick. bench/peers/events.ts has the same number. */
#define BATCH 16

static inline uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static inline void die(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static inline void raise_fd_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static inline void set_nonblocking(int fd) {
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) die("fcntl");
}

static inline void set_nodelay(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Listens on a loopback port chosen by the system. */
static inline int listen_loopback(int *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 4096) != 0) die("listen");
  if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) die("getsockname");
  *port = ntohs(address.sin_port);
  return fd;
}

/* Connects (blocking; loopback answers at once), then turns the socket non-blocking. */
static inline int connect_loopback(int port, int receive_buffer) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  if (receive_buffer > 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) die("connect");
  set_nonblocking(fd);
  set_nodelay(fd);
  return fd;
}

/* Writes all of it; the sockets this is used on are never full for long. */
static inline void send_all(int fd, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) die("send");
    if (sent <= 0) {
      usleep(50);
      continue;
    }
    bytes += sent;
    size -= (size_t)sent;
  }
}

static inline uint64_t first_number(const char *path) {
  FILE *file = fopen(path, "r");
  unsigned long long value = 0;
  if (file == NULL) return 0;
  if (fscanf(file, "%llu", &value) != 1) value = 0;
  fclose(file);
  return value;
}

/* CPU nanoseconds used so far by all live threads of `pid`, from schedstat; from stat (in clock ticks) where that is missing. */
static inline uint64_t process_cpu_ns(int pid) {
  char path[300];
  uint64_t total = 0;
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *tasks = opendir(path);
  if (tasks == NULL) return 0;
  for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
    if (task->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", pid, task->d_name);
    total += first_number(path);
  }
  closedir(tasks);
  if (total > 0) return total;

  unsigned long long user = 0, system = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2) user = system = 0;
  fclose(file);
  return (user + system) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* `pids` is "12,13". */
static inline uint64_t processes_cpu_ns(const char *pids) {
  uint64_t total = 0;
  for (const char *next = pids; next != NULL && *next != 0;) {
    total += process_cpu_ns(atoi(next));
    next = strchr(next, ',');
    if (next != NULL) next += 1;
  }
  return total;
}

static inline uint64_t own_cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Latencies in nanoseconds. When full, no more are taken: the caller thins them out. */
struct samples {
  uint64_t *values;
  size_t count, capacity;
};

static inline void sample(struct samples *s, uint64_t value) {
  if (s->values == NULL) {
    s->capacity = 4u << 20;
    s->values = malloc(s->capacity * sizeof *s->values);
    if (s->values == NULL) die("malloc");
  }
  if (s->count < s->capacity) s->values[s->count++] = value;
}

static inline int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Sort first. Milliseconds. */
static inline double percentile_ms(const struct samples *s, double fraction) {
  if (s->count == 0) return 0;
  size_t index = (size_t)(fraction * (double)(s->count - 1) + 0.5);
  return (double)s->values[index] / 1e6;
}

static inline void sort_samples(struct samples *s) {
  if (s->count > 0) qsort(s->values, s->count, sizeof *s->values, compare_u64);
}

#endif
