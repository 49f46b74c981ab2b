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
import { JsonRpcError, Peer } from '../../../../rpc/browser.ts';

export type PromptCommand = RpcResult<'command/list'>['data'][number];

/** Codes that the page distinguishes. */
export const rpcCodes = {
  threadNotFound: -32010,
  restoreConflict: -32019,
  approvalNotFound: -32021,
  questionNotFound: -32022,
} as const;

/** Changes of others that caused the refusal of a restore. */
export interface Refusal {
  /** The first conflicts. */
  readonly conflicts: readonly RestoreConflict[];
  readonly conflictsTotal: number;
}

/** Conflicts of a refused restore; null: it failed for another reason. */
export function conflictsOf(error: unknown): Refusal | null {
  if (!(error instanceof JsonRpcError) || error.code !== rpcCodes.restoreConflict) return null;
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
  // The page came from this server, which has proved itself.
  const take = (method: string, params: unknown) => onMessage({ method, params } as ServerMessage);
  const peer = new Peer({
    send: (text) => socket.send(text),
    // The answer is a request of its own, `approval/respond`.
    onRequest: ({ method, params }) => void take(method, params),
    onNotification: take,
  });
  const rpc: Rpc = {
    call: <M extends RpcMethod>(method: M, params: RpcParams<M>) =>
      peer.request(method, params) as Promise<RpcResult<M>>,
    notify: (method) => peer.notify(method, {}),
    close: () => socket.close(),
  };
  socket.onmessage = ({ data }: MessageEvent<string>) => {
    onFrame();
    peer.receive(data);
  };
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve(rpc);
    socket.onclose = ({ code, reason }) => {
      const error = new Error(reason === '' ? 'The connection was lost.' : reason);
      peer.close(error);
      reject(error);
      onClosed({ code, reason });
    };
  });
}
