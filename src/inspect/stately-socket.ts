import type { Authenticate, Socket, WebSocketRoute } from '../http/index.ts';
import { defaults } from '../protocol/index.ts';
import type { Recorder } from './recorder-types.ts';
import { type StatelyMessage, type StatelyOptions, statelyMessages } from './stately.ts';

export interface StatelySocketOptions {
  readonly path: string;
  readonly auth: Authenticate<unknown>;
  /** Asked for at the first connection: a recorder may be loaded late. */
  readonly recorder: () => Promise<Recorder>;
  readonly machines: () => Promise<StatelyOptions['machines']>;
  /** Reports a fault; the reader cannot be notified. */
  readonly onFault: (error: unknown) => void;
}

/** Largest message of a reader, in bytes. Messages are ignored. */
const incomingBytes = 4_096;

/**
 * A WebSocket for `createWebSocketReceiver` of `@statelyai/inspect`: all known actors, then every occurrence, each message
 * a text frame of JSON. A reader that is too slow is closed (1013) and starts again.
 */
export function statelySocket(options: StatelySocketOptions): WebSocketRoute {
  const unsubscribes = new Map<Socket, () => void>();

  async function follow(socket: Socket): Promise<void> {
    const [recorder, machines] = await Promise.all([options.recorder(), options.machines()]);
    // Closed while we waited.
    if (!unsubscribes.has(socket)) return;
    const messages = statelyMessages({ machines, actorOf: (id) => recorder.actor(id) });
    const send = (message: StatelyMessage) => socket.send(JSON.stringify(message));
    for (const record of recorder.snapshot()) messages(record).forEach(send);
    const unsubscribe = recorder.subscribe(
      (records) => {
        for (const { record } of records) messages(record).forEach(send);
      },
      () => socket.close(1001, 'The server is shutting down.'),
    );
    unsubscribes.set(socket, unsubscribe);
  }

  return {
    path: options.path,
    auth: options.auth,
    maxPayloadBytes: incomingBytes,
    maxBufferedBytes: defaults.sse.ringBytes,
    open(socket) {
      unsubscribes.set(socket, () => {});
      follow(socket).catch((error: unknown) => {
        options.onFault(error);
        socket.close(1011, 'Internal error.');
      });
    },
    message() {},
    close(socket) {
      unsubscribes.get(socket)?.();
      unsubscribes.delete(socket);
    },
  };
}
