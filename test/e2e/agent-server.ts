/** Agent servers of the built product, with a model that makes exactly the tool calls that its prompt lists. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parse } from 'valibot';
import { AppServerClient, type AppServerClientOptions, startThread } from '../../src/client/index.ts';
import {
  AppServerLock,
  type Item,
  type ItemOf,
  type Thread,
  type TraceEvent,
  type Turn,
} from '../../src/protocol/index.ts';
import { type Answer, answered, type Script, type UpstreamRequest } from '../fixtures/upstream/mock-upstream.ts';
import { eventually } from '../hub/harness.ts';
import { command, type Place, stateOf, type Teardown } from './harness.ts';

/** Text of a user message that lists the answers of the model, one per request of the turn. */
export const orders = (...rounds: readonly Answer[]): string => JSON.stringify(rounds);

let calls = 0;
/** Tool call with its own id. Its pieces are so short that none shows the arguments. */
export const toolCall = (name: string, args: unknown) => {
  calls += 1;
  return { id: `call_${calls}`, name, arguments: args };
};

/** Answers the next of the `orders` in the prompt; “done” after the last, or for a prompt without orders. */
export function obedient(request: UpstreamRequest): Script {
  const { words, answers } = lastWords(request);
  const rounds: readonly Answer[] = words.startsWith('[') ? JSON.parse(words) : [];
  return answered(request, rounds[answers] ?? { text: 'done' });
}

/** Last message of the user, and the number of answers of the model since. */
export function lastWords({ body }: UpstreamRequest): { words: string; answers: number } {
  const messages: { role: string; content: unknown }[] = body.messages;
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const content = messages[at]?.content;
  const words = Array.isArray(content) ? content.map((part) => part.text ?? '').join('') : String(content ?? '');
  return { words, answers: messages.slice(at + 1).filter(({ role }) => role === 'assistant').length };
}

/** A server that `oratorio api` runs. */
export interface ApiServer {
  /** Base URL of the chat API, without `/v1`. */
  readonly url: string;
  readonly pid: number;
  readonly process: ChildProcess;
  output(): string;
  /** `POST /v1/chat/completions`. */
  chat(body: object | Uint8Array<ArrayBuffer>, options?: ChatOptions): Promise<Response>;
}

export interface ChatOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Starts `oratorio api` and waits for its banner. The place ends it. */
export async function startApi(place: Place, workspace: string, key = ''): Promise<ApiServer> {
  const child = spawn(process.execPath, [place.command ?? command, 'api', '--workspace', workspace], {
    cwd: place.root,
    env: place.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [, url = ''] = await eventually(
    () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${output}`);
      return /POST (http:\S+)\/v1\/chat\/completions[\s\S]*Ctrl-C/.exec(output) ?? undefined;
    },
    () => `the banner: ${output}`,
  );
  return {
    url,
    pid: child.pid ?? 0,
    process: child,
    output: () => output,
    chat: (body, { headers = {}, signal } = {}) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }), ...headers },
        body: body instanceof Uint8Array ? body : JSON.stringify(body),
        ...(signal && { signal }),
      }),
  };
}

/** Contents of the `appserver.json` of this workspace. */
export const publishedBy = (workspace: string): AppServerLock =>
  parse(AppServerLock, JSON.parse(readFileSync(join(stateOf(workspace), 'appserver.json'), 'utf8')));

/** Longest time for an answer to any request of these tests. */
const timeoutMs = 120_000;

/** An initialized connection to the server of this workspace. */
export async function connect(
  t: Teardown,
  workspace: string,
  options: AppServerClientOptions = {},
): Promise<AppServerClient> {
  const { endpoints } = publishedBy(workspace);
  const client = await AppServerClient.connect(endpoints.appServerWebSocket ?? '', { timeoutMs, ...options });
  t.teardown(() => client.close());
  return client;
}

/** Answers every approval with `decision`, and records the requests. */
export function approver(decision: 'accept' | 'decline') {
  const asked: { tool: string; operation: string; target: string }[] = [];
  const onRequest: AppServerClientOptions['onRequest'] = (method, params) => {
    if (method !== 'item/approval/request') throw new Error(`${method} was not expected`);
    asked.push(params as (typeof asked)[number]);
    return { decision };
  };
  return { asked, onRequest };
}

/** Starts a turn and waits for its end. @returns the turn as the server has stored it */
export async function runTurn(client: AppServerClient, threadId: string, text: string): Promise<Turn> {
  const ended = turnEnd(client, threadId);
  await client.request('turn/start', { threadId, input: [{ type: 'text', text }] });
  await ended;
  return lastTurn(client, threadId);
}

/** Runs a turn in a thread of its own. */
export async function runAlone(client: AppServerClient, workspacePath: string, text: string): Promise<Turn> {
  return runTurn(client, await startThread(client, { workspacePath }), text);
}

const ends = ['turn/completed', 'turn/failed', 'turn/cancelled'];

/** Resolves with the notification that ends the next turn of this thread. */
export async function turnEnd(client: AppServerClient, threadId: string) {
  return heard(client, ({ method, params }) => ends.includes(method) && params['threadId'] === threadId);
}

type Notification = Parameters<Parameters<AppServerClient['onNotification']>[0]>[0];

/** Resolves with the next notification that fits; rejects when the connection ends before. */
export function heard(client: AppServerClient, fits: (notification: Notification) => boolean): Promise<Notification> {
  const found = new Promise<Notification>((resolve, reject) => {
    const off = client.onNotification((notification) => {
      if (!fits(notification)) return;
      off();
      resolve(notification);
    });
    void client.closed.then(reject);
  });
  // A test that failed before it awaits this promise must not fail again with an unhandled rejection.
  found.catch(() => undefined);
  return found;
}

export async function readThread(client: AppServerClient, threadId: string): Promise<Thread> {
  const { thread } = (await client.request('thread/read', { threadId, includeTurns: true })) as { thread: Thread };
  return thread;
}

export async function lastTurn(client: AppServerClient, threadId: string): Promise<Turn> {
  const turn = (await readThread(client, threadId)).turns?.at(-1);
  if (!turn) throw new Error(`${threadId} has no turn`);
  return turn;
}

export const itemsOf = <T extends Item['type']>({ items }: Pick<Turn, 'items'>, type: T): ItemOf<T>[] =>
  items.filter((item): item is ItemOf<T> => item.type === type);

/** Results of the tool calls of a turn, in the order of the calls. */
export function resultsOf(turn: Pick<Turn, 'items'>): ItemOf<'toolResult'>[] {
  const results = new Map(itemsOf(turn, 'toolResult').map((result) => [result.callId, result]));
  return itemsOf(turn, 'toolCall').flatMap(({ callId }) => results.get(callId) ?? []);
}

/** Traces in the database, oldest first, read while the server may write more. */
export function tracesOf(
  workspace: string,
): (Pick<TraceEvent, 'type' | 'data' | 'callId' | 'tool'> & { session: string })[] {
  const database = new DatabaseSync(join(stateOf(workspace), 'state.db'), { readOnly: true });
  try {
    return database
      .prepare(
        'SELECT type, json, sessionKey FROM traceEvents e JOIN traceSessions s ON s.key = e.session ORDER BY e.id',
      )
      .all()
      .map(({ type, json, sessionKey }) => ({ ...JSON.parse(String(json)), type, session: sessionKey }));
  } finally {
    database.close();
  }
}

/** Waits until the call has left these traces, in this order. */
export const traced = (workspace: string, callId: string, ...types: readonly string[]) => {
  const seen = () => tracesOf(workspace).filter((event) => event.callId === callId);
  return eventually(
    () => JSON.stringify(seen().map(({ type }) => type)) === JSON.stringify(types) || undefined,
    () => `traces ${types.join(', ')} of ${callId}, found ${JSON.stringify(seen())}`,
  );
};
