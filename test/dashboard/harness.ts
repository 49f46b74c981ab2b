/** Dashboard of a real agent server, and its HTTP client. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Test } from 'tap';
import type { ModelProvider } from '../../src/agent/index.ts';
import { dashboardToken } from '../../src/supervise/index.ts';
import { startServer } from '../appserver/harness.ts';
import { Session } from '../appserver/session.ts';
import { program, programEnvironment } from '../programs.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of all routes, compared field by field
export type Body = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
}

export interface Asking {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Default: the valid token; null: no token. */
  readonly token?: string | null;
}

export interface Scene {
  readonly server: Awaited<ReturnType<typeof startServer>>['server'];
  readonly path: string;
  readonly home: string;
  readonly log: string[];
  readonly url: string;
  readonly port: number;
  readonly token: string;
  ask(path: string, asking?: Asking): Promise<Answer>;
  /** Sends inputs in a new thread. Resolves with the id of the thread when the turns have ended. */
  say(...inputs: string[]): Promise<string>;
}

/** A server whose dashboard listens on a port of its own. */
export async function scene(
  t: Test,
  config: Readonly<Record<string, unknown>> = {},
  provider?: ModelProvider,
): Promise<Scene> {
  const dashboard = { Port: 0, ...(config['DashBoard'] as object | undefined) };
  const { server, path, home, log } = await startServer(t, provider, { config: { ...config, DashBoard: dashboard } });
  const url = new URL(server.endpoints.dashboard ?? 'http://nowhere').origin;
  const token = dashboardToken(home, server.workspacePath);
  const ask = (at: string, asking: Asking = {}) => request(url, at, { token, ...asking });
  const say = async (...inputs: string[]) => {
    const session = await Session.open(t, server.webSocketUrl, { onApproval: () => ({ decision: 'accept' }) });
    const { thread } = await session.call('thread/start', {});
    for (const [index, input] of inputs.entries()) {
      await session.say(thread.id, input);
      await session.until('turn/completed', undefined, index + 1);
    }
    return thread.id;
  };
  return { server, path, home, log, url, port: Number(new URL(url).port), token, ask, say };
}

export async function request(
  url: string,
  at: string,
  { method = 'GET', headers = {}, body, token }: Asking,
): Promise<Answer> {
  const response = await fetch(`${url}${at}`, {
    method,
    redirect: 'manual',
    headers: {
      ...(typeof token === 'string' && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: parsed(text) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface StreamRecord {
  readonly id: string;
  readonly event: string;
  readonly data: Body;
}

/** Reads an event stream with the plain fetch of the platform. */
export class Stream {
  readonly records: StreamRecord[] = [];
  readonly status: number;
  readonly headers: Headers;
  readonly #abort: AbortController;
  readonly #waiting = new Set<() => void>();
  #text = '';
  #isOver = false;
  /** Error that ended the stream; undefined for a regular end. */
  #failure: unknown;
  /** While it is set nothing is read. */
  #gate: Promise<void> = Promise.resolve();
  #open: () => void = () => undefined;

  private constructor(response: Response, abort: AbortController) {
    this.status = response.status;
    this.headers = response.headers;
    this.#abort = abort;
    void this.#read(response);
  }

  static async open(
    t: Test,
    url: string,
    token: string,
    { lastEventId, isPaused = false }: { readonly lastEventId?: string; readonly isPaused?: boolean } = {},
  ): Promise<Stream> {
    const abort = new AbortController();
    t.teardown(() => abort.abort());
    const response = await fetch(`${url}/api/events/stream`, {
      signal: abort.signal,
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${token}`,
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
    });
    const stream = new Stream(response, abort);
    if (isPaused) stream.pause();
    return stream;
  }

  get lastId(): string {
    return this.records.at(-1)?.id ?? '';
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  pause(): void {
    this.#gate = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  resume(): void {
    this.#open();
  }

  /** The trace events so far. */
  events(): Body[] {
    return this.records.filter(({ event }) => !event.startsWith('stream.')).map(({ data }) => data);
  }

  /** Resolves when `isEnough` accepts the received records. */
  until(isEnough: (records: readonly StreamRecord[]) => boolean, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(new Error(`never came: ${what}`))), 180_000);
      const settle = (act: () => void) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        act();
      };
      const check = () => {
        if (isEnough(this.records)) settle(resolve);
        else if (this.#isOver)
          settle(() => reject(new Error(`the stream ended before: ${what}`, { cause: this.#failure })));
      };
      this.#waiting.add(check);
      check();
    });
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(response: Response): Promise<void> {
    try {
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        await this.#gate;
        const piece = await reader?.read();
        if (!piece || piece.done) return;
        this.#take(piece.value);
      }
    } catch (error) {
      this.#failure = error;
    } finally {
      this.#isOver = true;
      for (const check of [...this.#waiting]) check();
    }
  }

  #take(piece: string): void {
    const blocks = (this.#text + piece).split('\n\n');
    this.#text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').flatMap((line) => {
          const colon = line.indexOf(': ');
          return colon <= 0 ? [] : [[line.slice(0, colon), line.slice(colon + 2)] as const];
        }),
      );
      const data = fields.get('data');
      if (data === undefined) continue;
      this.records.push({ id: fields.get('id') ?? '', event: fields.get('event') ?? '', data: JSON.parse(data) });
    }
    for (const check of [...this.#waiting]) check();
  }
}

const main = program('src/cli/main.ts');

/** The command line of this checkout's sources. */
export function oratorio(t: Test, home: string, ...args: string[]) {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main, ...args], {
    cwd: home,
    env: { ...programEnvironment, HOME: home, ORATORIO_HOME: home, NO_COLOR: '1' },
  });
  let text = '';
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      for (const check of waiting) check();
    });
  }
  const ended = once(child, 'close').then(([code]) => ({ code, text }));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const until = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const check = () => {
        const found = pattern.exec(text);
        if (found) resolve(found);
      };
      waiting.add(check);
      void ended.then(({ code }) => reject(new Error(`ended with ${code}: ${text}`)));
      check();
    });
  return { child, ended, until };
}
