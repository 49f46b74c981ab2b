/** Conversations of all workspaces, the most recently active first. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import { threadName } from '../../../protocol/browser.ts';
import type { HubThread, ThreadWorkspace } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { Empty } from '../../parts/empty.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { Banner } from '../../parts/state-banner.tsx';
import { StateStrip } from '../../parts/state-strip.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import { RenameThread } from '../chat/rename-thread.tsx';
import { costOf } from '../sessions/words.ts';
import { ageGroups } from './ages.ts';
import { createThreads, type ThreadsStore } from './store.ts';
import './threads.css';

/** Most banners about workspaces with unreadable conversations. */
const maxBanners = 3;

export default function ThreadsView({ app }: { readonly app: App }) {
  const store = useMemo(() => createThreads(app), [app]);
  const renamed = useSignal<HubThread | null>(null);
  const { q = '', archived } = app.router.route.value.query;
  useEffect(() => store.start(), [store]);
  useEffect(() => store.search({ q, archived: archived === 'true' }), [store, q, archived]);
  const list = store.data.value;
  const unread = list?.workspaces.filter(({ problem }) => problem !== null) ?? [];
  return (
    <ListView
      app={app}
      class="threads"
      title="Conversations"
      filter={{
        label: 'Find conversations',
        placeholder: 'Name, first words or workspace',
        text: q,
        onText: (text) => app.router.set({ q: text }),
        summary: list === null ? undefined : `${list.threads.length}${list.hasMore ? ' newest' : ''}`,
        pills: [
          {
            ...{ key: 'archived', label: 'Archived, too', isOn: archived === 'true' },
            toggle: () => app.router.set({ archived: archived === 'true' ? undefined : 'true' }),
          },
        ],
      }}
      state={{ error: store.error, at: store.at, isLoaded: list !== null, reload: store.reload }}
      notices={<Unread workspaces={unread} />}
      dialog={
        renamed.value && (
          <RenameThread
            name={renamed.value.name ?? ''}
            onClose={() => {
              renamed.value = null;
            }}
            onName={(displayName) => {
              const thread = renamed.peek();
              renamed.value = null;
              if (thread) void store.change(thread, { displayName });
            }}
          />
        )
      }
    >
      {list?.threads.length === 0 && <NoThreads isSearch={q !== ''} />}
      {list && (
        <List
          app={app}
          store={store}
          workspaces={new Map(list.workspaces.map((each) => [each.workspaceId, each]))}
          threads={list.threads}
          onRename={(thread) => {
            renamed.value = thread;
          }}
        />
      )}
      {list?.hasMore && <p class="quiet more">Older ones: search for them.</p>}
    </ListView>
  );
}

/** Workspaces whose conversations could not be read, with the reason. */
const Unread = ({ workspaces }: { readonly workspaces: readonly ThreadWorkspace[] }) => (
  <>
    {workspaces.slice(0, maxBanners).map(({ workspaceId, displayName, problem }) => (
      <Banner key={workspaceId} tone="warn">
        <p>
          {visible(displayName, { multiline: false })}: {visible(problem ?? '', { multiline: false })}
        </p>
      </Banner>
    ))}
    {workspaces.length > maxBanners && (
      <Banner tone="warn">
        <p>{workspaces.length - maxBanners} more workspaces could not be read.</p>
      </Banner>
    )}
  </>
);

const NoThreads = ({ isSearch }: { readonly isSearch: boolean }) =>
  isSearch ? (
    <Empty title="No results">
      <p>The search covers names, messages and workspaces.</p>
    </Empty>
  ) : (
    <Empty title="No conversation yet" command='oratorio chat "hello"'>
      <p>Conversations of all workspaces appear here.</p>
    </Empty>
  );

interface ListProps {
  readonly app: App;
  readonly store: ThreadsStore;
  readonly workspaces: ReadonlyMap<string, ThreadWorkspace>;
  readonly threads: readonly HubThread[];
  readonly onRename: (thread: HubThread) => void;
}

function List({ app, store, workspaces, threads, onRename }: ListProps) {
  return (
    <>
      {ageGroups(threads, ({ lastActiveAt }) => Date.parse(lastActiveAt), app.now.value).map(([title, group]) => (
        <section key={title} aria-label={title}>
          <h2>{title}</h2>
          <ul class="rows" aria-label="Conversations">
            {group.map((thread) => (
              <Row
                key={`${thread.workspaceId}/${thread.threadId}`}
                app={app}
                store={store}
                workspace={workspaces.get(thread.workspaceId)}
                thread={thread}
                onRename={onRename}
              />
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

interface RowProps extends Pick<ListProps, 'app' | 'store' | 'onRename'> {
  readonly thread: HubThread;
  readonly workspace: ThreadWorkspace | undefined;
}

function Row({ app, store, thread, workspace, onRename }: RowProps) {
  const name = nameOf(thread);
  const fixed = workspace ? whyFixed(workspace) : null;
  const isArchived = thread.status === 'archived';
  const isOff = fixed !== null || store.busy.value.has(`${thread.workspaceId}/${thread.threadId}`);
  // The clock of the server may be ahead of this one.
  const at = Math.min(Date.parse(thread.lastActiveAt), app.now.value);
  return (
    <li>
      <a href={thread.actionUrl}>
        <span class="name cut">{name}</span>
        <span class="where cut" title={workspace?.workspacePath}>
          {visible(workspace?.displayName ?? '', { multiline: false })}
          {fixed !== null && <span class="quiet"> · {workspace?.stateWord}</span>}
        </span>
        <State thread={thread} />
        <span class="quiet agent cut">{visible(thread.agent ?? '', { multiline: false })}</span>
        <span class="work">{thread.work && <StateStrip work={thread.work} />}</span>
        <span class="quiet cost">{thread.work && costOf(thread.work)}</span>
        <span class="quiet when" title={bothTimes(at)}>
          {distance(at, app.now.value)}
        </span>
      </a>
      <button
        type="button"
        class="bare"
        aria-label={`Rename ${name}`}
        title={fixed ?? 'Rename'}
        disabled={isOff}
        onClick={() => onRename(thread)}
      >
        <Glyph name="pencil" />
      </button>
      <button
        type="button"
        class="bare"
        aria-label={`${isArchived ? 'Unarchive' : 'Archive'} ${name}`}
        title={fixed ?? (isArchived ? 'Unarchive' : 'Archive')}
        disabled={isOff}
        onClick={() => void store.change(thread, { isArchived: !isArchived })}
      >
        <Glyph name={isArchived ? 'refresh' : 'box'} />
      </button>
    </li>
  );
}

function State({ thread }: { readonly thread: HubThread }) {
  const isFailed = thread.activity === 'idle' && thread.lastTurn?.status === 'failed';
  const tone = isFailed ? 'danger' : thread.activity === 'waiting' ? 'warn' : 'quiet';
  return <span class={`state ${tone}`}>{stateOf(thread)}</span>;
}

/** Name of a conversation for people. */
export const nameOf = ({ name }: Pick<HubThread, 'name'>): string =>
  visible(threadName({ displayName: name ?? undefined }), { multiline: false });

const turns: Readonly<Record<NonNullable<HubThread['lastTurn']>['status'], string>> = {
  completed: 'ok',
  failed: 'failed',
  cancelled: 'cancelled',
  // The agent server has ended: the next one marks the turn as cancelled.
  running: 'broken off',
  waitingApproval: 'broken off',
  waitingQuota: 'broken off',
};

/** Present activity of a conversation, or the end of its last turn. */
export function stateOf({ activity, status, lastTurn }: Pick<HubThread, 'activity' | 'status' | 'lastTurn'>): string {
  if (activity === 'waiting') return 'Waits for you';
  if (activity === 'running') return 'Running';
  const word = lastTurn === null ? 'No turn yet' : `Last turn ${turns[lastTurn.status]}`;
  return status === 'archived' ? `Archived · ${word}` : word;
}

/** Whether conversations of a workspace can be changed now, and if not, why. */
export function whyFixed({ state, stateWord }: Pick<ThreadWorkspace, 'state' | 'stateWord'>): string | null {
  if (state === 'running' || state === 'unhealthy') return null;
  return `The workspace is ${stateWord}: start it to change its conversations.`;
}
