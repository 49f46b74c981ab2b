import { messageOf } from '../../../../lib/browser.ts';
import type { EventPage, EventSummary } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { copyText } from '../../../parts/copy.tsx';
import { maxEventsPerPage, paths } from '../paths.ts';
import { toChromeTrace, toJsonLines } from './export.ts';
import type { Trace } from './store.ts';

/** Every event of the session with whole texts, page by page. */
async function* pagesOf(app: App, sessionKey: string): AsyncGenerator<readonly EventSummary[]> {
  let after: number | undefined;
  do {
    const query = { after, bodies: 'full', limit: maxEventsPerPage };
    const page = await app.api.get<EventPage>(paths.events(sessionKey, query));
    yield page.events;
    after = page.next;
  } while (after !== undefined);
}

async function allOf(app: App, sessionKey: string): Promise<EventSummary[]> {
  const all: EventSummary[] = [];
  for await (const events of pagesOf(app, sessionKey)) all.push(...events);
  return all;
}

/** A session key as part of a file name. */
const fileName = (key: string): string => key.replaceAll(/[^\w.-]+/g, '_').slice(0, 80);

function save(parts: BlobPart[], type: string, name: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser must read it before it is removed.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function reportFailure(app: App, work: Promise<void>): void {
  work.catch((error: unknown) => app.toast({ text: `Not exported: ${messageOf(error)}`, tone: 'danger' }));
}

/** One event per line, in a file of its own. */
export function saveJsonLines(app: App, { sessionKey }: Trace): void {
  const work = async () => {
    const parts: string[] = [];
    for await (const events of pagesOf(app, sessionKey)) parts.push(toJsonLines(events));
    save(parts, 'application/x-ndjson', `${fileName(sessionKey)}.jsonl`);
  };
  reportFailure(app, work());
}

/** The format of Perfetto and of the tools of browsers. */
export function saveChromeTrace(app: App, trace: Trace): void {
  const { sessionKey } = trace;
  const work = async () => {
    const session = trace.session.peek() ?? { sessionKey };
    const text = JSON.stringify(toChromeTrace(session, await allOf(app, sessionKey), trace.now.peek()));
    save([text], 'application/json', `${fileName(sessionKey)}.trace.json`);
  };
  reportFailure(app, work());
}

export function copyAll(app: App, { sessionKey }: Trace): void {
  const work = async () => {
    const events = await allOf(app, sessionKey);
    copyText(app, JSON.stringify(events, null, 2), `${events.length} events`);
  };
  reportFailure(app, work());
}
