/** Hub whose answers are set by the test: one `node:http` server on its own port. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { answerProof } from '../prove.ts';

export interface FakeHub {
  readonly baseUrl: string;
  /** Received requests in order, with lines such as `GET /v1/status`. */
  readonly requests: { readonly line: string; readonly headers: IncomingMessage['headers']; readonly body: string }[];
  close(): Promise<void>;
}

/** The token of `lockOf`. */
export const hubToken = 'secret-token-of-a-hub';

export type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** @param tokens those that it proves to hold; null: it answers the proof route like any other */
export async function fakeHub(answer: Answer, tokens: readonly string[] | null = [hubToken]): Promise<FakeHub> {
  const requests: FakeHub['requests'] = [];
  const server = createServer((request, response) => {
    if (tokens && answerProof(request, response, 'hub', tokens)) return;
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      requests.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
      answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

export const statusOf = (baseUrl: string, changes: Record<string, unknown> = {}) => ({
  hubVersion: '9.9.9',
  pid: process.pid,
  startedAt: '2026-01-01T00:00:00.000Z',
  statePath: '/nowhere',
  apiBaseUrl: baseUrl,
  capabilities: { appServerManagement: true, portManagement: true, events: true, notifications: true, tray: false },
  ...changes,
});

/** Publishes an address as a Hub would. */
export function writeLock(home: string, content: Record<string, unknown> | string): void {
  mkdirSync(join(home, 'hub'), { recursive: true });
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(join(home, 'hub', 'hub.lock'), text, { mode: 0o600 });
}

export const lockOf = (baseUrl: string, changes: Record<string, unknown> = {}) => ({
  pid: process.pid,
  apiBaseUrl: baseUrl,
  token: hubToken,
  startedAt: '2026-01-01T00:00:00.000Z',
  version: '9.9.9',
  ...changes,
});

export const recordOf = (path: string, changes: Record<string, unknown> = {}) => ({
  workspacePath: path,
  canonicalWorkspacePath: path,
  state: 'running',
  pid: 4242,
  endpoints: { appServerWebSocket: 'ws://127.0.0.1:1/ws?token=t' },
  serviceStatus: { appServerWebSocket: { state: 'running', url: 'ws://127.0.0.1:1/ws', reason: null } },
  serverVersion: '9.9.9',
  startedByHub: true,
  exitCode: null,
  lastError: null,
  recentStderr: null,
  ...changes,
});
