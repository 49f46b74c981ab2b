import { computed, signal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import type { ReviewDraft, ReviewItem, ReviewRun } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { reviewApi } from '../review/api.ts';
import { rowsOf, type Standing, standings } from './standing.ts';

const pageSize = 100;
const typingMs = 200;

export const states = ['open', 'all'] as const;

export interface QueueData {
  readonly items: readonly ReviewItem[];
  readonly next: string | undefined;
  readonly runs: readonly ReviewRun[];
  readonly drafts: readonly ReviewDraft[];
}

/** Rows of the queue for its address. Further pages are added while scrolling. */
export function createQueue(app: App) {
  const api = reviewApi(app.api);
  const { query } = app.router.route.peek();
  const text = signal(query['q'] ?? '');
  const asked = signal(text.peek());
  const isAll = signal(query['state'] === 'all');
  const standing = signal<Standing | undefined>(standings.find((each) => each === query['show']));
  const selectedId = signal<string | undefined>(undefined);
  /** Data of the last fetch, set by the view. */
  const data = signal<QueueData | null>(null);
  const older = signal<{ readonly items: readonly ReviewItem[]; readonly next: string | undefined } | null>(null);
  let typing: ReturnType<typeof setTimeout> | undefined;
  let isFetchingMore = false;

  const filter = () => ({ q: asked.peek().trim(), ...(!isAll.peek() && { state: 'open' }), limit: pageSize });
  const next = computed(() => (older.value ? older.value.next : data.value?.next));
  const all = computed(() => {
    if (!data.value) return [];
    const { items, runs, drafts } = data.value;
    const known = new Set(items.map(({ itemId }) => itemId));
    const further = (older.value?.items ?? []).filter(({ itemId }) => !known.has(itemId));
    return rowsOf([...items, ...further], runs, drafts);
  });
  const remember = () =>
    app.router.set({ q: text.peek().trim(), show: standing.peek(), state: isAll.peek() ? 'all' : undefined });
  const startOver = () => {
    older.value = null;
    remember();
  };

  return {
    ...{ text, asked, isAll, standing, selectedId, data },
    rows: computed(() => all.value.filter((row) => standing.value === undefined || row.standing === standing.value)),
    counts: computed(() => {
      const counts = new Map<Standing, number>();
      for (const row of all.value) counts.set(row.standing, (counts.get(row.standing) ?? 0) + 1);
      return counts;
    }),
    hasMore: computed(() => next.value !== undefined),

    async load(aborted: AbortSignal): Promise<QueueData> {
      const [items, runs, drafts, unpublished] = await Promise.all([
        api.items(filter(), aborted),
        api.runs({ limit: 200 }, aborted),
        api.drafts({ status: 'draft', limit: pageSize }, aborted),
        api.drafts({ status: 'publishFailed', limit: pageSize }, aborted),
      ]);
      return {
        items: items.rows,
        next: items.next,
        runs: runs.rows,
        // The newer one of two drafts of one pull request counts.
        drafts: [...unpublished.rows, ...drafts.rows].reverse(),
      };
    },

    async more(): Promise<void> {
      const cursor = next.peek();
      if (cursor === undefined || isFetchingMore) return;
      isFetchingMore = true;
      const before = asked.peek();
      try {
        const page = await api.items({ ...filter(), cursor });
        if (asked.peek() !== before) return;
        older.value = { items: [...(older.peek()?.items ?? []), ...page.rows], next: page.next };
      } catch (fault) {
        app.toast({ text: messageOf(fault), tone: 'danger' });
      } finally {
        isFetchingMore = false;
      }
    },

    search(given: string): void {
      text.value = given;
      clearTimeout(typing);
      typing = setTimeout(() => {
        startOver();
        asked.value = given;
      }, typingMs);
    },
    show(wanted: Standing | undefined): void {
      standing.value = wanted;
      remember();
    },
    showAll(isWanted: boolean): void {
      isAll.value = isWanted;
      startOver();
    },
    stop: () => clearTimeout(typing),
  };
}
export type Queue = ReturnType<typeof createQueue>;
