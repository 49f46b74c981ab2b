/*
 * The limit: an SSE broadcaster with one epoll loop and nothing else. It answers any request with an event stream. Ticks
 * that are queued together go to each reader in one write, as an HTTP chunk that is made once: a server that coalesces
 * less can only be slower.
 *
 * A connection to the control port brings ticks: byte 'e' is one event, 'b' is BATCH events in one write.
 * Prints {"port":…,"control":…} when it serves; ends when its standard input does.
 */
#include "common.h"

#define FD_LIMIT 65536
/* Bytes of one event at the most, and of the events that are written together. */
#define FRAME_ROOM 512
#define CHUNK_ROOM 65536

struct reader {
  int fd;
  int index;
  char *pending;
  size_t pending_size, pending_offset;
};

static struct reader *reader_of[FD_LIMIT];
static struct reader *streaming[FD_LIMIT];
static int streaming_count;
static int epoll;
static uint64_t sequence;

static const char head[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\nx-accel-buffering: no\r\n"
    "Transfer-Encoding: chunked\r\n\r\n1b\r\n: connected\n\nretry: 2000\n\n\r\n";

static void watch(int fd, uint32_t events, int operation) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (epoll_ctl(epoll, operation, fd, &event) != 0) die("epoll_ctl");
}

static void drop(struct reader *r) {
  if (r->index >= 0) {
    streaming[r->index] = streaming[--streaming_count];
    streaming[r->index]->index = r->index;
  }
  reader_of[r->fd] = NULL;
  close(r->fd);
  free(r->pending);
  free(r);
}

static void queue(struct reader *r, const char *bytes, size_t size) {
  size_t left = r->pending_size - r->pending_offset;
  char *grown = malloc(left + size);
  if (grown == NULL) die("malloc");
  if (left > 0) memcpy(grown, r->pending + r->pending_offset, left);
  memcpy(grown + left, bytes, size);
  free(r->pending);
  r->pending = grown;
  r->pending_size = left + size;
  r->pending_offset = 0;
  watch(r->fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
}

static void write_to(struct reader *r, const char *bytes, size_t size) {
  if (r->pending != NULL) {
    queue(r, bytes, size);
    return;
  }
  ssize_t sent = send(r->fd, bytes, size, MSG_NOSIGNAL);
  if (sent < 0) sent = 0;
  if ((size_t)sent < size) queue(r, bytes + sent, size - (size_t)sent);
}

static void flush(struct reader *r) {
  ssize_t sent = send(r->fd, r->pending + r->pending_offset, r->pending_size - r->pending_offset, MSG_NOSIGNAL);
  if (sent <= 0) return;
  r->pending_offset += (size_t)sent;
  if (r->pending_offset < r->pending_size) return;
  free(r->pending);
  r->pending = NULL;
  r->pending_size = r->pending_offset = 0;
  watch(r->fd, EPOLLIN, EPOLL_CTL_MOD);
}

/* The same event as bench/peers/events.ts makes. */
static size_t frame(char *into, size_t room) {
  sequence += 1;
  return (size_t)snprintf(
      into, room,
      "event: appserver.running\nid: bench-%llu\ndata: {\"kind\":\"appserver.running\",\"at\":\"2026-11-21T08:00:00.000Z\","
      "\"workspacePath\":\"/home/user/projects/example\",\"data\":{\"pid\":%llu,\"endpoints\":"
      "{\"appServerWebSocket\":\"ws://127.0.0.1:40123/ws\"}}}\n\n",
      (unsigned long long)sequence, (unsigned long long)(1000 + sequence % 9000));
}

/* Broadcasts up to `count` queued ticks as one chunk. Returns how many: those that fit. */
static int broadcast(const char *ticks, int count) {
  static char chunk[CHUNK_ROOM + 32];
  char *body = chunk + 16;
  size_t size = 0;
  int sent = 0;
  for (; sent < count; sent += 1) {
    int events = ticks[sent] == 'b' ? BATCH : 1;
    if (size + (size_t)events * FRAME_ROOM > CHUNK_ROOM) break;
    for (int i = 0; i < events; i += 1) size += frame(body + size, FRAME_ROOM);
  }
  char prefix[16];
  size_t prefix_size = (size_t)snprintf(prefix, sizeof prefix, "%zx\r\n", size);
  char *start = body - prefix_size;
  memcpy(start, prefix, prefix_size);
  memcpy(body + size, "\r\n", 2);
  for (int i = 0; i < streaming_count; i += 1) write_to(streaming[i], start, prefix_size + size + 2);
  return sent;
}

static void accept_readers(int listener) {
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    struct reader *r = fd < FD_LIMIT ? calloc(1, sizeof *r) : NULL;
    if (r == NULL) die("accept");
    r->fd = fd;
    r->index = -1;
    reader_of[fd] = r;
    set_nodelay(fd);
    watch(fd, EPOLLIN, EPOLL_CTL_ADD);
  }
}

/* A request fits one segment here: the end of its header block starts the stream. */
static void read_request(struct reader *r) {
  char bytes[4096];
  ssize_t size = recv(r->fd, bytes, sizeof bytes, 0);
  if (size == 0 || (size < 0 && errno != EAGAIN)) {
    drop(r);
    return;
  }
  if (r->index >= 0 || size < 4 || memmem(bytes, (size_t)size, "\r\n\r\n", 4) == NULL) return;
  r->index = streaming_count;
  streaming[streaming_count++] = r;
  write_to(r, head, sizeof head - 1);
}

int main(void) {
  static char ticks[65536];
  static struct epoll_event events[1024];
  int port, control_port, control = -1, tick_count = 0, tick_next = 0;
  raise_fd_limit();
  epoll = epoll_create1(EPOLL_CLOEXEC);
  int listener = listen_loopback(&port), control_listener = listen_loopback(&control_port);
  watch(listener, EPOLLIN, EPOLL_CTL_ADD);
  watch(control_listener, EPOLLIN, EPOLL_CTL_ADD);
  watch(STDIN_FILENO, EPOLLIN, EPOLL_CTL_ADD);
  printf("{\"port\":%d,\"control\":%d}\n", port, control_port);
  fflush(stdout);

  for (;;) {
    int count = epoll_wait(epoll, events, 1024, tick_next < tick_count ? 0 : -1);
    for (int i = 0; i < count; i += 1) {
      int fd = events[i].data.fd;
      if (fd == STDIN_FILENO) {
        char ignored[64];
        if (read(fd, ignored, sizeof ignored) <= 0) return 0;
      } else if (fd == listener) {
        accept_readers(listener);
      } else if (fd == control_listener) {
        control = accept4(control_listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        watch(control, EPOLLIN, EPOLL_CTL_ADD);
      } else if (fd == control) {
        memmove(ticks, ticks + tick_next, (size_t)(tick_count - tick_next));
        tick_count -= tick_next;
        tick_next = 0;
        ssize_t size = recv(fd, ticks + tick_count, sizeof ticks - (size_t)tick_count, 0);
        if (size > 0) tick_count += (int)size;
        else if (size == 0) {
          close(fd);
          control = -1;
        }
      } else if (reader_of[fd] != NULL) {
        if ((events[i].events & EPOLLOUT) != 0 && reader_of[fd]->pending != NULL) flush(reader_of[fd]);
        if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_request(reader_of[fd]);
      }
    }
    if (tick_next < tick_count) tick_next += broadcast(ticks + tick_next, tick_count - tick_next);
  }
}
