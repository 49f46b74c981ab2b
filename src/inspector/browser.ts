/** Inspector of a program in a browser. Its page is a file of the same origin, in another tab or a frame. */
import { wireOf } from '../inspect/index.ts';
import { type InspectorMessage, inspectorChannel } from '../protocol/index.ts';
import type { BrowserInspectorOptions, Inspector } from './options.ts';
import { createOutlet } from './outlet.ts';
import { randomId } from './random-id.ts';
import { createWatch } from './watch.ts';

export type * from './options.ts';

const clock = {
  now: () => Date.now(),
  setTimeout: (callback: () => void, milliseconds: number): unknown => setTimeout(callback, milliseconds),
  clearTimeout: (timer: unknown) => clearTimeout(timer as number),
};

/**
 * Records every actor that is created with `inspect`, for the page of this package on the same origin.
 *
 * @example
 * const inspector = createInspector({ page: '/inspector/' });
 * createActor(machine, { inspect: inspector.inspect }).start();
 * button.onclick = async () => window.open(await inspector.url, '_blank', 'noopener');
 */
export function createInspector({ page = '/inspector/', ...options }: BrowserInspectorOptions = {}): Inspector {
  const watch = createWatch(options, clock);
  const outlet = createOutlet(watch, wireOf, clock);
  const id = channelId();
  const program = randomId();
  const channel = new BroadcastChannel(inspectorChannel(id));
  const post = (message: InspectorMessage) => channel.postMessage(message);
  const left = new AbortController();
  const end = () => {
    if (left.signal.aborted) return;
    left.abort();
    channel.close();
    outlet.close();
  };

  channel.addEventListener('message', ({ data }: MessageEvent<InspectorMessage>) => {
    // The script was loaded again without a reload of its document.
    if (data.type === 'hello' && data.program !== program) end();
    if (data.type !== 'question') return;
    outlet.ask(data.question, left.signal).then(
      (answer) => {
        if (!left.signal.aborted) post({ type: 'answer', id: data.id, answer });
      },
      (error: unknown) => options.onFault?.(error),
    );
  });
  post({ type: 'hello', program });
  const leave = () => post({ type: 'bye' });
  addEventListener('pagehide', leave, { signal: left.signal });
  return {
    inspect: watch.inspect,
    url: Promise.resolve(new URL(`${page}#channel=${id}`, document.baseURI).href),
    async close() {
      if (!left.signal.aborted) leave();
      end();
    },
  };
}

const storageKey = 'oratorio.inspector.channel';

/** Channel name of this tab, which survives a reload. */
function channelId(): string {
  try {
    const known = sessionStorage.getItem(storageKey);
    if (known !== null && /^[0-9a-f]{32}$/.test(known)) return known;
    const id = randomId();
    sessionStorage.setItem(storageKey, id);
    return id;
  } catch {
    // The browser blocks storage.
    return randomId();
  }
}
