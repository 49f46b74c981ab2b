/** Transport to the program: HTTP to a program in Node, a `BroadcastChannel` to a program in another tab. */
import { inspectorChannel } from '../../protocol/browser.ts';
import type { InspectorMessage, InspectorQuestion } from '../../protocol/index.ts';
import { ApiError, refusal } from '../app/api.ts';

export interface Transport {
  /** Rejects with `ApiError` if the program refuses the request, does not answer or has ended. */
  ask<T>(question: InspectorQuestion, signal?: AbortSignal): Promise<T>;
}

const key = 'oratorio.inspector';
/** Time limit of an answer: the program answers after at most 15 s, even without new records. */
const answerMs = 25_000;

/**
 * Transport for the fragment of the page's address, `#token=…` or `#channel=…`, which is moved to the storage of the tab. Null: the
 * address has no such fragment.
 */
export function takeTransport(): Transport | null {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const kind of ['token', 'channel']) {
    const value = given.get(kind);
    if (value === null) continue;
    sessionStorage.setItem(key, `${kind}:${value}`);
    history.replaceState(null, '', `${location.pathname}${location.search}`);
  }
  const [kind, value] = (sessionStorage.getItem(key) ?? '').split(':', 2);
  if (value === undefined) return null;
  return kind === 'channel' ? overChannel(value) : overHttp(value);
}

const unreachable = (): ApiError => new ApiError(0, 'unreachable', 'The program does not answer.');

function overHttp(token: string): Transport {
  return {
    async ask<T>(question: InspectorQuestion, signal: AbortSignal = new AbortController().signal) {
      const response = await fetch('./ask', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(question),
        cache: 'no-store',
        signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]),
      }).catch(() => {
        throw unreachable();
      });
      if (!response.ok) throw await refusal(response);
      return (await response.json()) as T;
    },
  };
}

function overChannel(id: string): Transport {
  const channel = new BroadcastChannel(inspectorChannel(id));
  const waiting = new Map<string, (answer: unknown) => void>();
  const failing = new Set<() => void>();
  let asked = 0;
  const page = crypto.getRandomValues(new Uint32Array(2)).join('-');
  channel.addEventListener('message', ({ data }: MessageEvent<InspectorMessage>) => {
    if (data.type === 'answer') waiting.get(data.id)?.(data.answer);
    // A new program does not answer requests to the earlier program.
    if (data.type === 'hello' || data.type === 'bye') for (const fail of [...failing]) fail();
  });
  return {
    ask: <T>(question: InspectorQuestion, signal?: AbortSignal) =>
      new Promise<T>((resolve, reject) => {
        asked += 1;
        const name = `${page}-${asked}`;
        const end = () => {
          clearTimeout(timer);
          waiting.delete(name);
          failing.delete(fail);
          signal?.removeEventListener('abort', fail);
        };
        const fail = () => {
          end();
          reject(unreachable());
        };
        const timer = setTimeout(fail, answerMs);
        waiting.set(name, (answer) => {
          end();
          resolve(answer as T);
        });
        failing.add(fail);
        signal?.addEventListener('abort', fail, { once: true });
        channel.postMessage({ type: 'question', id: name, question } satisfies InspectorMessage);
      }),
  };
}
