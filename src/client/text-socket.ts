import { LocalSocket } from './local-socket.ts';

/** Events of a connection. */
export interface SocketHandlers {
  readonly onOpen: () => void;
  /** @param data text, or whatever else the server has sent */
  readonly onMessage: (data: unknown) => void;
  /** @param code 1006 without a close frame */
  readonly onClose: (code: number, reason: string) => void;
  /** The connection could not be opened, or has carried what no server may send. `onClose` follows. */
  readonly onError: () => void;
}

/** Part of a `WebSocket` that a client of an agent server needs. */
export interface TextSocket {
  readonly isOpen: boolean;
  send(text: string): void;
  close(): void;
}

/** Opens an address: on Node with a client of our own, which takes less to load; elsewhere, and for `wss:`, the standard one. */
export function openTextSocket(url: string, handlers: SocketHandlers): TextSocket {
  const isNode = typeof process !== 'undefined' && typeof process.getBuiltinModule === 'function';
  return isNode && /^ws:/i.test(url) ? new LocalSocket(url, handlers) : standardSocket(url, handlers);
}

function standardSocket(url: string, { onOpen, onMessage, onClose, onError }: SocketHandlers): TextSocket {
  const socket = new WebSocket(url);
  socket.addEventListener('open', onOpen);
  socket.addEventListener('message', ({ data }) => onMessage(data));
  socket.addEventListener('close', ({ code, reason }) => onClose(code, reason));
  socket.addEventListener('error', onError);
  return {
    get isOpen() {
      return socket.readyState === WebSocket.OPEN;
    },
    send: (text) => socket.send(text),
    close: () => socket.close(),
  };
}
