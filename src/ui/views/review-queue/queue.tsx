import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { App } from '../../app/app.ts';
import type { Command } from '../../app/commands.ts';
import { useResource } from '../../app/resource.ts';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { Banner } from '../../parts/state-banner.tsx';
import { type ListHandle, VirtualList } from '../../parts/virtual-list.tsx';
import { type ReviewApi, reviewApi } from '../review/api.ts';
import { attempt, isAbout } from '../review/live.ts';
import { isActive, titleOf } from '../review/words.ts';
import { createQueue, type Queue } from './queue-store.ts';
import { QueueCells, QueueHeader } from './row.tsx';
import { type QueueRow, standings, standingWords } from './standing.ts';

const isConcerned = isAbout(['item.changed', 'run.changed', 'draft.changed', 'source.changed', 'sync.changed']);

/** Every known pull request, with the state of its reviews. */
export function QueuePage({ app }: { readonly app: App }) {
  const queue = useMemo(() => createQueue(app), [app]);
  const api = useMemo(() => reviewApi(app.api), [app]);
  const list = useRef<ListHandle | null>(null);
  const { data, error, at, reload } = useResource(queue.load, [queue.asked.value, queue.isAll.value], {
    live: app.live,
    isConcerned,
  });
  useEffect(() => {
    queue.data.value = data.value;
  }, [queue, data.value]);
  useEffect(() => queue.stop, [queue]);
  const review = ({ item }: QueueRow) =>
    void attempt(app, api.dispatch(item.itemId, { scope: 'full' }), `#${item.number} is in the queue.`).then(reload);
  const sync = () => void attempt(app, api.sync(), 'Syncing all repositories.').then(reload);
  useLayoutEffect(() => {
    const reach = {
      focusList: () => list.current?.focus(),
      sync,
      review,
      reload,
    };
    return app.commands.register(queueCommands(app, api, queue, reach));
  }, [app, queue]);
  return (
    <ListView
      app={app}
      class="review-queue"
      title="Queue"
      filter={{
        label: 'Find pull requests',
        placeholder: 'Title, author or number',
        text: queue.text.value,
        onText: queue.search,
        pills: pillsOf(queue),
        summary: `${queue.rows.value.length.toLocaleString()}${queue.hasMore.value ? '+' : ''}`,
      }}
      tools={
        <button type="button" onClick={sync} title="Sync all repositories now (s)">
          <Glyph name="refresh" />
          Sync now
        </button>
      }
      state={{ error, at, reload, isLoaded: queue.data.value !== null }}
      placeholderRows={12}
    >
      <Rows app={app} queue={queue} list={list} review={review} isStale={error.value !== null} />
    </ListView>
  );
}

function pillsOf(queue: Queue) {
  const counts = queue.counts.value;
  return [
    ...standings.map((standing) => ({
      key: standing,
      label: `${standingWords[standing]} ${(counts.get(standing) ?? 0).toLocaleString()}`,
      isOn: queue.standing.value === standing,
      toggle: () => queue.show(queue.standing.peek() === standing ? undefined : standing),
    })),
    {
      key: 'all',
      label: 'Closed too',
      title: 'Also pull requests that are merged or closed',
      isOn: queue.isAll.value,
      toggle: () => queue.showAll(!queue.isAll.peek()),
    },
  ];
}

interface RowsProps {
  readonly app: App;
  readonly queue: Queue;
  readonly list: { current: ListHandle | null };
  readonly review: (row: QueueRow) => void;
  readonly isStale: boolean;
}

function Rows({ app, queue, list, review, isStale }: RowsProps) {
  const rows = queue.rows.value;
  const now = app.now.value;
  if (rows.length === 0) return <Nothing app={app} queue={queue} />;
  return (
    <VirtualList
      label="Pull requests"
      recycles
      role="grid"
      class={isStale ? 'stale' : ''}
      count={rows.length}
      total={queue.hasMore.value ? -1 : rows.length}
      rowHeight={app.preferences.rows.value === 'comfortable' ? 36 : 28}
      rowKey={(index) => rows[index]?.item.itemId ?? index}
      header={<QueueHeader />}
      handle={list}
      selected={rows.findIndex(({ item }) => item.itemId === queue.selectedId.value)}
      onSelect={(index) => {
        queue.selectedId.value = rows[index]?.item.itemId;
      }}
      onOpen={(index) => open(app, rows[index])}
      onNearEnd={() => void queue.more()}
      rowProps={(index) => {
        const row = rows[index];
        return { class: 'queue-row', 'aria-label': row && `${titleOf(row.item)}, ${row.look.word}` };
      }}
      renderRow={(index) => {
        const row = rows[index];
        return row ? <QueueCells row={row} now={now} onRetry={review} /> : null;
      }}
    />
  );
}

function open(app: App, row: QueueRow | undefined): void {
  if (row) app.router.go({ view: 'queue', path: [row.item.itemId] });
}

/** Empty list: no match, no pull request yet, or no repository, each with the next step. */
function Nothing({ app, queue }: { readonly app: App; readonly queue: Queue }) {
  const isFiltered = queue.text.value.trim() !== '' || queue.standing.value !== undefined;
  if (isFiltered) {
    return (
      <Empty title="No pull request matches">
        <button
          type="button"
          onClick={() => {
            queue.search('');
            queue.show(undefined);
          }}
        >
          Show all pull requests
        </button>
      </Empty>
    );
  }
  return <NothingYet app={app} />;
}

const exampleSettings = '{"Oratorio": {"GitHub": {"AppId": 1, "Repositories": ["owner/name"]}}}';

function NothingYet({ app }: { readonly app: App }) {
  const { data } = useResource((signal) => reviewApi(app.api).sources(signal));
  if (!data.value) return <Skeleton rows={4} />;
  if (data.value.length === 0) {
    return (
      <Empty title="No repository is set up yet" command={exampleSettings}>
        <p>
          Name the GitHub App and the repositories in <code>oratorio.config.json</code> of the backend’s state
          directory, which is <code>~/.oratorio/backend</code> by default:
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No open pull request">
      <p>
        {data.value.length === 1 ? 'The repository is' : `${data.value.length.toLocaleString()} repositories are`}{' '}
        watched. New pull requests appear here; “Sync now” checks at once.
      </p>
      {data.value.some(({ lastSyncError }) => lastSyncError !== undefined) && (
        <Banner tone="warn">
          <p>A repository could not be synced.</p>
          <a href="#/sources">See the sources</a>
        </Banner>
      )}
    </Empty>
  );
}

interface Reach {
  readonly focusList: () => void;
  readonly sync: () => void;
  readonly review: (row: QueueRow) => void;
  readonly reload: () => void;
}

function queueCommands(app: App, api: ReviewApi, queue: Queue, reach: Reach): Command[] {
  const group = 'Queue';
  const selected = () => queue.rows.peek().find(({ item }) => item.itemId === queue.selectedId.peek());
  const step = (by: number) => {
    const rows = queue.rows.peek();
    const at = rows.findIndex(({ item }) => item.itemId === queue.selectedId.peek());
    queue.selectedId.value = rows[Math.min(rows.length - 1, Math.max(0, at + by))]?.item.itemId;
    // Enter then opens it.
    reach.focusList();
  };
  const activeRun = () => {
    const run = selected()?.run;
    return run && isActive(run) ? run : undefined;
  };
  return [
    { id: 'queue.next', title: 'Select the next pull request', group, keys: ['j'], run: () => step(1) },
    { id: 'queue.previous', title: 'Select the previous pull request', group, keys: ['k'], run: () => step(-1) },
    { id: 'queue.sync', title: 'Sync all repositories now', group, keys: ['s'], run: reach.sync },
    {
      ...{ id: 'queue.open', title: 'Open the selected pull request', group },
      isEnabled: () => selected() !== undefined,
      run: () => open(app, selected()),
    },
    {
      ...{ id: 'queue.review', title: 'Review the selected pull request, or try again', group, keys: ['r'] },
      isEnabled: () => selected() !== undefined && activeRun() === undefined,
      run: () => {
        const row = selected();
        if (row) reach.review(row);
      },
    },
    {
      ...{ id: 'queue.cancel', title: 'Cancel the review of the selected pull request', group, keys: ['x'] },
      isEnabled: () => activeRun() !== undefined,
      run: () => {
        const run = activeRun();
        if (run) void attempt(app, api.cancel(run.runId), `The review of #${run.number} is ended.`).then(reach.reload);
      },
    },
  ];
}
