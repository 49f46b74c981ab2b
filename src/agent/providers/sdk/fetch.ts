import type { IncomingHttpHeaders } from 'node:http';
import { strictJson } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';
import { ModelError } from '../../model.ts';
import type { Upstream } from '../upstream/connection.ts';
import { refusedFault } from '../upstream/errors.ts';
import { EventFilter, type EventRules } from './event-filter.ts';

/** The part of a `Response` that the libraries read. The real class would load Node's whole HTTP client beside ours. */
interface AnswerHead {
  readonly ok: true;
  readonly status: number;
  readonly statusText: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: ReadableStream<Uint8Array>;
}

export interface UpstreamFetchOptions {
  readonly upstream: Upstream;
  /** Preparation of event streams; absent: none. */
  readonly events: EventRules | undefined;
  /** Called with the headers of every answer, also of a refusal. */
  readonly onHeaders: (headers: IncomingHttpHeaders) => void;
}

/**
 * `fetch` for a library, over our own connections: redirects are not followed, silence and size are bounded, and a request
 * reaches the configured upstream only. An unsuccessful answer is thrown as its typed error.
 */
export function fetchOver({ upstream, events, onHeaders }: UpstreamFetchOptions): typeof fetch {
  const ask = (url: string | URL | Request, init: RequestInit = {}) =>
    new Promise<AnswerHead>((resolve, reject) => {
      const { pathname, search } = new URL(String(url));
      const signal = init.signal ?? new AbortController().signal;
      let filter: EventFilter | undefined;
      let size = 0;
      let refusal: ((text: string) => Error) | undefined;
      let reason = '';
      let body: ReadableStreamDefaultController<Uint8Array> | undefined;
      const run = upstream.run({
        method: init.method === 'GET' ? 'GET' : 'POST',
        path: `${pathname}${search}`,
        ...(typeof init.body === 'string' && { payload: strictJson(init.body) }),
        accept: 'text/event-stream, application/json',
        headers: headersOf(init.headers),
        signal,
        onHead(status, headers) {
          onHeaders(headers);
          if (status < 200 || status > 299) {
            const { clean, place } = upstream;
            refusal = (text) => refusedFault(status, headers, text, { clean, now: Date.now(), place });
            return;
          }
          if (/^text\/html/i.test(headers['content-type'] ?? '')) {
            refusal = () =>
              new ModelError('upstreamProtocol', 'The upstream returned HTML instead of JSON.', {
                isRetryable: false,
              });
            return;
          }
          if (events && /^text\/event-stream/i.test(headers['content-type'] ?? '')) filter = new EventFilter(events);
          const stream = new ReadableStream<Uint8Array>({
            start(controller) {
              body = controller;
            },
          });
          const texts = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
          resolve({ ok: true, status, statusText: '', headers: new Map(texts), body: stream });
        },
        onBytes(chunk) {
          size += chunk.length;
          if (refusal) {
            reason += chunk.toString('utf8');
            return size > defaults.upstream.errorBytes;
          }
          if (size > defaults.upstream.streamBytes) {
            throw new ModelError(
              'answerTooLong',
              `The upstream sent more than ${defaults.upstream.streamBytes} bytes.`,
            );
          }
          const passed = filter ? filter.push(chunk) : chunk;
          if (passed.length > 0) body?.enqueue(passed);
          return false;
        },
      });
      run.then(
        () => {
          if (refusal) return reject(refusal(reason));
          const rest = filter?.end() ?? '';
          if (rest !== '') body?.enqueue(new TextEncoder().encode(rest));
          body?.close();
        },
        (error: unknown) => {
          // The status suffices if its explanation was cut off.
          const cause = refusal && !signal.aborted ? refusal(reason) : error;
          reject(cause);
          body?.error(cause);
        },
      );
    });
  // The libraries read no more of a response than `AnswerHead` has.
  return ask as unknown as typeof fetch;
}

/** Headers that the connection sets itself: length, type, agent and the key. */
const connectionHeaders = /^(user-agent|content-.*|accept|authorization|x-api-key|x-goog-api-key)$/i;

/** Further headers of a library's request, e.g. its version of the wire. */
function headersOf(headers: HeadersInit | undefined): Record<string, string> {
  const entries = Object.entries((headers ?? {}) as Record<string, string | undefined>);
  const kept = entries.filter(([name, value]) => value !== undefined && !connectionHeaders.test(name));
  return Object.fromEntries(kept.map(([name, value]) => [name.toLowerCase(), String(value)]));
}
