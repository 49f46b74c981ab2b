import * as v from 'valibot';
import { wellFormedJson } from '../lib/index.ts';
import { type RpcErrorName, RpcId, RpcNotification, RpcRequest, RpcResponse, rpcErrors } from '../protocol/index.ts';

/** One frame of a client, classified. */
export type Frame =
  | { readonly kind: 'request'; readonly message: RpcRequest }
  | { readonly kind: 'notification'; readonly message: RpcNotification }
  | { readonly kind: 'response'; readonly message: RpcResponse }
  | {
      readonly kind: 'refused';
      readonly id: RpcId | null;
      readonly error: 'parseError' | 'invalidRequest';
      readonly reason: string;
    };

const refused = (error: 'parseError' | 'invalidRequest', reason: string, id: RpcId | null = null): Frame => ({
  kind: 'refused',
  id,
  error,
  reason,
});

/** Classifies a frame by JSON-RPC 2.0, sections 4 to 6. Never throws. */
export function readFrame(text: string): Frame {
  let frame: unknown;
  try {
    frame = JSON.parse(wellFormedJson(text));
  } catch {
    return refused('parseError', 'the frame is not JSON');
  }
  if (Array.isArray(frame)) return refused('invalidRequest', 'batches are not supported');
  if (typeof frame !== 'object' || frame === null) return refused('invalidRequest', 'the message is not an object');
  const { id, method } = frame as { id?: unknown; method?: unknown };
  const knownId = v.is(RpcId, id) ? id : null;
  if (method === undefined) {
    const response = v.safeParse(RpcResponse, frame);
    if (response.success) return { kind: 'response', message: response.output };
    return refused('invalidRequest', 'method is missing', knownId);
  }
  if (id === undefined) {
    const notification = v.safeParse(RpcNotification, frame, { abortEarly: true });
    if (notification.success) return { kind: 'notification', message: notification.output };
    return refused('invalidRequest', whatIsWrong(notification.issues[0]));
  }
  const request = v.safeParse(RpcRequest, frame, { abortEarly: true });
  if (request.success) return { kind: 'request', message: request.output };
  return refused('invalidRequest', whatIsWrong(request.issues[0]), knownId);
}

const rules: Readonly<Record<string, string>> = {
  jsonrpc: 'jsonrpc must be "2.0"',
  id: 'id must be a string or a whole number',
  method: 'method must be a string',
  params: 'params must be an object',
};

function whatIsWrong(issue: v.BaseIssue<unknown>): string {
  const key = String(issue.path?.[0]?.key);
  return rules[key] ?? 'the message is malformed';
}

/** JSON of one message. Threads of earlier versions may hold text that strict readers refuse. */
function frameOf(message: object): string {
  return wellFormedJson(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

export function resultFrame(id: RpcId, result: unknown): string {
  return frameOf({ id, result });
}

/** `detail` completes the standard message; `data` is for programs. */
export function errorFrame(id: RpcId | null, name: RpcErrorName, detail?: string, data?: unknown): string {
  const { code, message } = rpcErrors[name];
  const error = {
    code,
    message: detail === undefined ? message : `${message}: ${detail}`,
    ...(data !== undefined && { data }),
  };
  return frameOf({ id, error });
}

export function notificationFrame(method: string, params: unknown): string {
  return frameOf({ method, params });
}

export function requestFrame(id: RpcId, method: string, params: unknown): string {
  return frameOf({ id, method, params });
}
