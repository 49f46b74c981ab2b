import { dashboardPaths, pageSubprotocol } from '../../../../protocol/browser.ts';
import type {
  ApprovalRequest,
  RestoreConflict,
  RpcMethod,
  RpcNotificationMethod,
  RpcNotificationParams,
  RpcParams,
  RpcResult,
} from '../../../../protocol/index.ts';

/** A refusal of the agent server; `code` as in docs/app-server-protocol.md. */
export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly code: number;
  /** Details for programs. */
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Codes that the page distinguishes. */
export const rpcCodes = { threadNotFound: -32010, restoreConflict: -32019, approvalNotFound: -32021 } as const;

/** Changes of others that caused the refusal of a restore. */
export interface Refusal {
  /** The first conflicts. */
  readonly conflicts: readonly RestoreConflict[];
  readonly conflictsTotal: number;
}

/** Conflicts of a refused restore; null: it failed for another reason. */
export function conflictsOf(error: unknown): Refusal | null {
  if (!(error instanceof RpcError) || error.code !== rpcCodes.restoreConflict) return null;
  const { conflicts = [], conflictsTotal = 0 } = error.data as Partial<Refusal>;
  return conflicts.length > 0 ? { conflicts, conflictsTotal: Math.max(conflictsTotal, conflicts.length) } : null;
}

/** One notification, or a request for approval. */
export type ServerMessage =
  | {
      readonly [N in RpcNotificationMethod]: { readonly method: N; readonly params: RpcNotificationParams<N> };
    }[RpcNotificationMethod]
  | { readonly method: 'item/approval/request'; readonly params: ApprovalRequest };

export interface RpcOptions {
  readonly token: string | null;
  readonly onMessage: (message: ServerMessage) => void;
  /** Called for each received frame. */
  readonly onFrame: () => void;
  readonly onClosed: (close: { readonly code: number; readonly reason: string }) => void;
}

export interface Rpc {
  call<M extends RpcMethod>(method: M, params: RpcParams<M>): Promise<RpcResult<M>>;
  notify(method: 'initialized'): void;
  close(): void;
}

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

interface Frame {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Address of the WebSocket, relative to the page. */
export function socketUrl(base: string = document.baseURI): string {
  const url = new URL(dashboardPaths.socket.slice(1), base);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.hash = '';
  url.search = '';
  return url.href;
}

/** JSON-RPC of the agent server over one WebSocket. It does not reconnect. */
export function openRpc({ token, onMessage, onFrame, onClosed }: RpcOptions): Promise<Rpc> {
  const socket = new WebSocket(socketUrl(), token === null ? [pageSubprotocol] : [pageSubprotocol, token]);
  const waiting = new Map<number, Waiting>();
  let count = 0;
  const rpc: Rpc = {
    call: (method, params) =>
      new Promise((resolve, reject) => {
        count += 1;
        waiting.set(count, { resolve, reject });
        socket.send(JSON.stringify({ jsonrpc: '2.0', id: count, method, params }));
      }),
    notify: (method) => socket.send(JSON.stringify({ jsonrpc: '2.0', method, params: {} })),
    close: () => socket.close(),
  };
  socket.onmessage = ({ data }: MessageEvent<string>) => {
    onFrame();
    const frame = JSON.parse(data) as Frame;
    // The page came from this server, which has proved itself.
    if (frame.method !== undefined) return onMessage({ method: frame.method, params: frame.params } as ServerMessage);
    const asked = waiting.get(Number(frame.id));
    waiting.delete(Number(frame.id));
    if (frame.error) asked?.reject(new RpcError(frame.error.code, frame.error.message, frame.error.data));
    else asked?.resolve(frame.result as never);
  };
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve(rpc);
    socket.onclose = ({ code, reason }) => {
      const error = new Error(reason === '' ? 'The connection was lost.' : reason);
      for (const each of waiting.values()) each.reject(error);
      waiting.clear();
      reject(error);
      onClosed({ code, reason });
    };
  });
}
