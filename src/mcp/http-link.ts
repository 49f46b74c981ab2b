import { defaults, type McpServerSettings } from '../protocol/index.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { failureOf, McpFailure, networkCode } from './failure.ts';
import type { JSONRPCMessage, StreamableHTTPClientTransport, Transport, TransportSendOptions } from './library.ts';
import type { Link, LinkEnd } from './link.ts';
import type { ListReview } from './list-review.ts';
import { MessagePace, UnreadAnswers } from './message-pace.ts';
import type { LoginSession } from './oauth/index.ts';

type HttpSettings = McpServerSettings & { readonly transport: 'streamableHttp' };
type Environment = Readonly<Record<string, string | undefined>>;
type MakeTransport = (
  ...args: ConstructorParameters<typeof StreamableHTTPClientTransport>
) => StreamableHTTPClientTransport;

/** Where to ask and with which headers. @throws McpFailure when a variable that holds a credential is not set */
function addressOf(settings: HttpSettings, env: Environment): { url: URL; headers: Record<string, string> } {
  const url = new URL(settings.url);
  const headers = { ...settings.httpHeaders };
  for (const [header, name] of Object.entries(settings.envHttpHeaders)) headers[header] = variable(name, env);
  const { bearerTokenEnvVar } = settings;
  if (bearerTokenEnvVar !== undefined) headers['Authorization'] = `Bearer ${variable(bearerTokenEnvVar, env)}`;
  if (url.username !== '' || url.password !== '') {
    // `fetch` takes no credentials in a URL.
    headers['Authorization'] ??= `Basic ${Buffer.from(`${url.username}:${url.password}`).toString('base64')}`;
    url.username = '';
    url.password = '';
  }
  return { url, headers };
}

function variable(name: string, env: Environment): string {
  const value = env[name];
  if (value !== undefined && value !== '') return value;
  throw new McpFailure('misconfigured', `The environment variable ${name} is not set.`, { isRetryable: false });
}

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers([[name, value]]);
    } catch {
      // The error of `Headers` quotes the value.
      throw new McpFailure('misconfigured', `The header ${name} has characters that no header may have.`, {
        isRetryable: false,
      });
    }
  }
}

interface Watching {
  readonly lists: ListReview;
  readonly pace: MessagePace;
  /** Name of the server, if the user can log in to it. */
  readonly login: string | undefined;
  readonly onLost: (end: LinkEnd) => void;
}

/**
 * The streamable HTTP transport of the protocol, of both eras. The library's own, watched: it reports neither a request whose
 * answer broke off nor a session that the server has lost.
 */
class WatchedTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport['onmessage']>;
  readonly hasPerRequestStream = true;
  readonly #inner: StreamableHTTPClientTransport;
  readonly #lists: ListReview;
  readonly #onLost: (end: LinkEnd) => void;
  readonly #waiting = new Set<string | number>();
  readonly #unread: UnreadAnswers;
  readonly #login: string | undefined;

  constructor(inner: StreamableHTTPClientTransport, { lists, pace, login, onLost }: Watching) {
    this.#inner = inner;
    this.#lists = lists;
    this.#login = login;
    this.#onLost = onLost;
    this.#unread = new UnreadAnswers(onLost);
    inner.onmessage = (message) => {
      if (!('method' in message) && message.id !== undefined) this.#waiting.delete(message.id);
      if ('method' in message && 'id' in message) pace.spend(defaults.mcp.messagesPerRequest);
      this.onmessage?.(lists.received(message));
    };
    inner.onclose = () => this.onclose?.();
    inner.onerror = (error) => {
      this.onerror?.(error);
      // The stream of notifications of the older era; only its wording distinguishes it from a request's.
      if (error.message.startsWith('Maximum reconnection attempts')) onLost(lost('Its event stream has ended.'));
    };
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    const id = 'method' in message && 'id' in message ? message.id : undefined;
    if (id !== undefined) this.#waiting.add(id);
    this.#lists.sent(message);
    const { requestSignal, onRequestStreamEnd, headers } = options;
    try {
      const sent = this.#inner.send(message, {
        ...(requestSignal && { requestSignal }),
        ...(headers && { headers }),
        onRequestStreamEnd: () => {
          onRequestStreamEnd?.();
          this.#giveUp(id);
        },
      });
      await ('method' in message ? sent : this.#unread.during(sent));
    } catch (error) {
      if (id !== undefined) this.#waiting.delete(id);
      if (requestSignal?.aborted !== true) this.#judge(error);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#waiting.clear();
    await this.#inner.close();
  }

  terminateSession(): Promise<void> {
    return this.#inner.terminateSession();
  }

  /** The stream that was to bring the answer has ended without it. */
  #giveUp(id: string | number | undefined): void {
    if (id === undefined || !this.#waiting.delete(id)) return;
    this.onmessage?.({
      jsonrpc: '2.0',
      id,
      error: { code: -32_000, message: 'The answer broke off. Whether the call had an effect is unknown.' },
    });
  }

  /** A server that is not there, that wants a log-in, or that does not know our session any more, needs a new conversation. */
  #judge(error: unknown): void {
    const { status } = error as { readonly status?: unknown };
    if (this.#login !== undefined && (status === 401 || error instanceof McpFailure)) {
      const { code, message, isRetryable } = failureOf(error, this.#login);
      // The call gets the refusal before the connection ends, because it had no effect.
      setImmediate(() => this.#onLost({ code, message, isRetryable }));
    } else if (networkCode(error) !== undefined) this.#onLost(lost(failureOf(error).message));
    else if (status === 404 && this.sessionId !== undefined) this.#onLost(lost('The server has ended the session.'));
  }
}

const lost = (message: string): LinkEnd => ({ code: 'unreachable', message, isRetryable: true });

interface HttpLinkOptions {
  readonly makeTransport: MakeTransport;
  readonly lists: ListReview;
  /** The user's log-in, for a server without another credential. */
  readonly session?: LoginSession | undefined;
}

/** @throws McpFailure for settings that cannot work */
export function openHttpLink(
  settings: HttpSettings,
  env: Environment,
  { makeTransport, lists, session }: HttpLinkOptions,
): Link {
  const { url, headers } = addressOf(settings, env);
  checkHeaders(headers);
  const { promise: gone, resolve } = Promise.withResolvers<LinkEnd | undefined>();
  const pace = new MessagePace();
  const bounded = boundedFetch(defaults.mcp.messageBytes, pace);
  const inner = makeTransport(url, {
    requestInit: { headers },
    fetch: session ? session.noteRefusals(bounded) : bounded,
    ...(session && { authProvider: session }),
  });
  const transport = new WatchedTransport(inner, { lists, pace, login: session?.name, onLost: end });
  function end(how?: LinkEnd): void {
    void transport.close().finally(() => resolve(how));
  }
  return {
    transport,
    pid: null,
    output: () => '',
    close() {
      // The machine's patience is the deadline: it cuts the connection when this takes too long.
      void transport
        .terminateSession()
        .catch(() => {})
        .finally(() => end());
    },
    terminate: () => end(),
    kill: () => end(),
    fail: end,
    gone,
  };
}
