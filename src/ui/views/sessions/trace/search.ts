import { effect, type ReadonlySignal, signal } from '@preact/signals';
import type { EventPage } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { maxEventsPerPage, paths } from '../paths.ts';
import type { Filter, TextMatches } from './filter.ts';

/** Pause in typing before a search. */
const pauseMs = 250;
/** Texts whose results are cached. */
const most = 8;

/** Searches whole events for the texts of a filter on the server, because the page holds shortened ones. */
export function createSearch(app: App, sessionKey: string, filter: ReadonlySignal<Filter>) {
  const found = signal<TextMatches>(new Map());
  const isSearching = signal(false);

  async function look(text: string, abort: AbortSignal): Promise<void> {
    const ids = new Set<number>();
    let after: number | undefined;
    do {
      const query = { q: text, after, bodies: 'none', limit: maxEventsPerPage };
      const page = await app.api.get<EventPage>(paths.events(sessionKey, query), abort);
      for (const { id } of page.events) ids.add(id);
      after = page.next;
    } while (after !== undefined);
    found.value = new Map([...[...found.peek()].slice(1 - most), [text, ids]]);
  }

  return {
    found: found as ReadonlySignal<TextMatches>,
    /** Whether the search is running: more events may match. */
    isSearching: isSearching as ReadonlySignal<boolean>,

    start(): () => void {
      let abort = new AbortController();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const stop = effect(() => {
        const texts = filter.value.terms.flatMap(({ name, value }) => (name === 'text' ? [value.toLowerCase()] : []));
        const missing = texts.filter((text) => !found.peek().has(text));
        abort.abort();
        clearTimeout(timer);
        isSearching.value = missing.length > 0;
        if (missing.length === 0) return;
        abort = new AbortController();
        const { signal: aborted } = abort;
        timer = setTimeout(() => {
          Promise.all(missing.map((text) => look(text, aborted))).then(
            () => {
              isSearching.value = false;
            },
            (error: unknown) => {
              if (aborted.aborted) return;
              isSearching.value = false;
              app.toast({ text: `The search is not complete: ${(error as Error).message}`, tone: 'danger' });
            },
          );
        }, pauseMs);
      });
      return () => {
        stop();
        clearTimeout(timer);
        abort.abort();
      };
    },
  };
}
