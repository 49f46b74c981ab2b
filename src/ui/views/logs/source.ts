import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { messageOf } from '../../../lib/browser.ts';
import { dashboardPaths } from '../../../protocol/browser.ts';
import type { LogPage } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { type Row, rowOfLine, rowsOfText } from './lines.ts';

/** Lines that are stored while the view is open. */
const bound = 10_000;
const pageLines = 1_000;
const everyMs = 1_500;

/** Process and stream to read. */
export interface Output {
  readonly path: string;
  readonly process: 'server' | 'sidecar';
  readonly stream: 'stderr' | 'stdout';
}

/** A followed log. */
export interface Tail {
  readonly rows: Signal<readonly Row[]>;
  /** Lines missing at the beginning, because they are no longer stored. */
  readonly missing: Signal<number>;
  readonly error: Signal<string | null>;
  /** When the log was last read, in milliseconds since the epoch; null: never. */
  readonly at: Signal<number | null>;
}

/**
 * Reads a log and polls it for new lines while the component is mounted.
 * @param output process and stream to read, on the page of the Hub; null: the log of this agent server
 */
export function useTail(app: App, output: Output | null): Tail {
  const rows = useSignal<readonly Row[]>([]);
  const missing = useSignal(0);
  const error = useSignal<string | null>(null);
  const at = useSignal<number | null>(null);
  useEffect(() => {
    rows.value = [];
    missing.value = 0;
    at.value = null;
    error.value = null;
    const abort = new AbortController();
    const read = output ? readText(app, output, rows) : readLines(app, rows, missing);
    void poll(read, { error, at }, abort.signal);
    return () => abort.abort();
  }, [app, output?.path, output?.process, output?.stream]);
  return { rows, missing, error, at };
}

/** Reads the next part of a log; resolves with true if more is available immediately. */
type Read = (signal: AbortSignal) => Promise<boolean>;

async function poll(read: Read, { error, at }: Pick<Tail, 'error' | 'at'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let isMore = false;
    try {
      isMore = await read(signal);
      error.value = null;
      at.value = Date.now();
    } catch (fault) {
      if (signal.aborted) return;
      error.value = messageOf(fault);
    }
    if (!isMore) await pause(everyMs, signal);
  }
}

/** Log of an agent server, read by line number, so that the server sends only new lines. */
function readLines(app: App, rows: Signal<readonly Row[]>, missing: Signal<number>): Read {
  let after: number | undefined;
  return async (signal) => {
    const query = new URLSearchParams({
      limit: String(pageLines),
      ...(after !== undefined && { after: String(after) }),
    });
    const page = await app.api.get<LogPage>(`${dashboardPaths.logs}?${query}`, signal);
    if (signal.aborted || page.lines.length === 0) return false;
    after = page.lines.at(-1)?.seq ?? after;
    missing.value += page.dropped;
    const all = [...rows.peek(), ...page.lines.map(rowOfLine)];
    missing.value += Math.max(0, all.length - bound);
    rows.value = all.slice(-bound);
    return page.lines.length >= pageLines;
  };
}

/** Reads the end of a process's output. */
function readText(app: App, { path, process, stream }: Output, rows: Signal<readonly Row[]>): Read {
  const query = new URLSearchParams({ path, process, stream, bytes: '1048576' });
  let before: string | undefined;
  return async (signal) => {
    const text = await app.api.text(`/v1/appservers/logs?${query}`, signal);
    if (signal.aborted || text === before) return false;
    before = text;
    rows.value = rowsOfText(text).slice(-bound);
    return false;
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
