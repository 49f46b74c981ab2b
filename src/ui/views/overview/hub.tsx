import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import { moreProblems } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { Empty } from '../../parts/empty.tsx';
import { age, splitPath } from '../../parts/format.ts';
import { Cell, ColumnHeader, HeaderRow } from '../../parts/grid.tsx';
import { Mark } from '../../parts/icons.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { bothTimes } from '../../parts/time.ts';
import { fullState } from '../../parts/tone.ts';
import { type ListHandle, VirtualList } from '../../parts/virtual-list.tsx';
import type { Action } from '../../parts/workspace-acts.ts';
import { amount, counted } from '../sessions/words.ts';
import { Acts } from './acts.tsx';
import { Facts } from './facts.tsx';
import { Problems } from './problems.tsx';
import { useStopQuestion } from './stop-question.tsx';
import { Answering, AsOf, capital, LastTurn } from './words.tsx';
import { nameOf, type Shown, troubleOf, Workspaces } from './workspaces.ts';

/** Filters by the state of a workspace. */
const groups = { trouble: 'Trouble', ready: 'Ready', asleep: 'Asleep', stopped: 'Stopped' } as const;
/** Rows of a page of the list. */
const limit = 1_000;

/** Every workspace of this machine and of its hosts: its state, and the actions on it. */
export function HubOverview({ app }: { readonly app: App }) {
  const store = useMemo(() => new Workspaces(app), [app]);
  const { q, state: group, after } = app.router.route.value.query;
  const list = useRef<ListHandle | null>(null);
  const { act, question } = useStopQuestion(store);
  const [selectedPath, select] = useSelected(app);
  useEffect(() => store.start(), [store]);
  useEffect(() => store.search({ q, group, after, limit: String(limit) }), [store, q, group, after]);

  const shown = store.all.value;
  const { sums = [], next = null } = store.list.value ?? {};
  const sumOf = (name: keyof typeof groups | 'workspaces') => sums.reduce((sum, each) => sum + each[name], 0);
  const all = sumOf('workspaces');
  const selected = shown.find(({ path }) => path === selectedPath);
  useLayoutEffect(() => {
    const step = (by: number) => {
      const at = shown.findIndex(({ path }) => path === selectedPath);
      select(shown[Math.min(shown.length - 1, Math.max(0, at + by))]?.path);
      list.current?.focus();
    };
    const group = 'Workspaces';
    return app.commands.register([
      { id: 'hub.next', title: 'Select the next workspace', group, keys: ['j'], run: () => step(1) },
      { id: 'hub.previous', title: 'Select the previous workspace', group, keys: ['k'], run: () => step(-1) },
      {
        ...{ id: 'hub.close', title: 'Close the facts', group, keys: ['Escape'] },
        isEnabled: () => selectedPath !== undefined,
        run: () => select(undefined),
      },
    ]);
  }, [shown.length, selectedPath]);

  return (
    <ListView
      app={app}
      class="home"
      title="Workspaces"
      filter={{
        label: 'Find workspaces',
        placeholder: 'Path, state or error',
        text: q ?? '',
        onText: (text) => app.router.set({ q: text, after: undefined }),
        summary: shown.length === all ? amount(all) : `${amount(shown.length)} of ${amount(all)}`,
        pills: (Object.keys(groups) as (keyof typeof groups)[]).map((key) => ({
          key,
          label: `${groups[key]} ${amount(sumOf(key))}`,
          isOn: group === key,
          toggle: () => app.router.set({ state: group === key ? undefined : key, after: undefined }),
        })),
      }}
      tools={
        <>
          {(next !== null || after !== undefined) && (
            <button type="button" onClick={() => app.router.set({ after: next ?? undefined })}>
              {next === null ? 'First page' : `Next ${amount(limit)}`}
            </button>
          )}
          <HubFacts app={app} status={store.status.value} />
        </>
      }
      state={{ error: store.fault, isLoaded: store.list.value !== null, reload: () => void store.refresh() }}
      placeholderRows={10}
      notices={<Problems problems={store.status.value?.problems ?? []} tone="warn" />}
      dialog={question}
    >
      <div class={`hub-body ${selected ? 'with-facts' : ''}`}>
        <Body
          app={app}
          store={store}
          all={all}
          shown={shown}
          selected={selectedPath}
          select={select}
          act={act}
          list={list}
        />
        {selected && <Facts app={app} store={store} workspace={selected} act={act} onClose={() => select(undefined)} />}
      </div>
    </ListView>
  );
}

/** Selection, saved in the address after a pause, so that a held key does not change the address each time. */
function useSelected(app: App): readonly [string | undefined, (path: string | undefined) => void] {
  const { workspace } = app.router.route.value.query;
  const selected = useSignal(workspace);
  // Our own change of the address arrives later than the next selection may.
  const own = useRef(workspace);
  useEffect(() => {
    if (workspace !== own.current) selected.value = workspace;
    own.current = workspace;
  }, [workspace]);
  const path = selected.value;
  useEffect(() => {
    const timer = setTimeout(() => {
      own.current = path;
      app.router.set({ workspace: path });
    }, addressMs);
    return () => clearTimeout(timer);
  }, [path]);
  return [
    path,
    (next) => {
      selected.value = next;
    },
  ];
}

/** A browser refuses addresses that change too often. */
const addressMs = 200;

function HubFacts({ app, status }: { readonly app: App; readonly status: Workspaces['status']['value'] }) {
  if (!status) return null;
  return (
    <span
      class="quiet"
      title={`${status.apiBaseUrl}\n${status.statePath}\nsince ${bothTimes(Date.parse(status.startedAt))}`}
    >
      Hub {status.hubVersion} · process {status.pid} · up {age(app.now.value - Date.parse(status.startedAt))}
    </span>
  );
}

interface BodyProps {
  readonly app: App;
  readonly store: Workspaces;
  /** Number of all workspaces. */
  readonly all: number;
  readonly shown: readonly Shown[];
  readonly selected: string | undefined;
  readonly select: (path: string | undefined) => void;
  readonly act: (action: Action, workspace: Shown) => void;
  readonly list: { current: ListHandle | null };
}

function Body({ app, store, all, shown, selected, select, act, list }: BodyProps) {
  const now = app.now.value;
  if (all === 0) {
    return (
      <Empty title="No workspace yet" command="oratorio up --init <dir>">
        <p>A workspace is a directory with an agent server of its own. This starts one and shows it here:</p>
      </Empty>
    );
  }
  if (shown.length === 0) {
    return (
      <Empty title="No workspace matches">
        <button type="button" onClick={() => app.router.set({ q: undefined, state: undefined, after: undefined })}>
          Show all {counted(all, 'workspace')}
        </button>
      </Empty>
    );
  }
  const isComfortable = app.preferences.rows.value === 'comfortable';
  return (
    <VirtualList
      label="Workspaces"
      role="grid"
      count={shown.length}
      rowHeight={isComfortable ? 40 : 32}
      isMeasured={true}
      rowKey={(index) => shown[index]?.path ?? index}
      header={<Head />}
      handle={list}
      selected={shown.findIndex(({ path }) => path === selected)}
      onSelect={(index) => select(shown[index]?.path)}
      onOpen={(index) => {
        const page = shown[index]?.record.page;
        if (page) location.assign(page);
      }}
      rowProps={(index) => ({
        class: shown[index]?.record.asOf ? 'workspace-row past' : 'workspace-row',
        'aria-label': shown[index]?.path,
      })}
      renderRow={(index, isSelected) => {
        const workspace = shown[index];
        return workspace ? (
          <Row store={store} workspace={workspace} now={now} isSelected={isSelected} act={act} />
        ) : null;
      }}
    />
  );
}

const Head = () => (
  <HeaderRow class="workspace-row head-row">
    <ColumnHeader>Workspace</ColumnHeader>
    <ColumnHeader>State</ColumnHeader>
    <ColumnHeader class="c-since number">Since</ColumnHeader>
    <ColumnHeader class="c-model">Model</ColumnHeader>
    <ColumnHeader class="c-turn">Last turn</ColumnHeader>
    <ColumnHeader class="c-trouble">Problem</ColumnHeader>
    <ColumnHeader>Actions</ColumnHeader>
  </HeaderRow>
);

interface RowProps {
  readonly store: Workspaces;
  readonly workspace: Shown;
  readonly now: number;
  readonly isSelected: boolean;
  readonly act: (action: Action, workspace: Shown) => void;
}

function Row({ store, workspace, now, isSelected, act }: RowProps) {
  const { path, look, word, since, record } = workspace;
  const { head } = splitPath(record.canonicalWorkspacePath);
  const { restartCount: restarts, asOf } = record;
  return (
    <>
      <Cell class="c-name cut" title={path}>
        <b>{visible(nameOf(workspace), { multiline: false })}</b> <span class="quiet">{head}</span>
      </Cell>
      <Cell class="c-state">
        <span class={`pill ${look.tone}`} title={fullState([record.phase])}>
          <Mark tone={look.tone} shape={look.shape} />
          {capital(word)}
        </span>
        {restarts > 0 && <span class="quiet"> {counted(restarts, 'restart')}</span>}
        <AsOf at={asOf} now={now} />
      </Cell>
      <Cell class="c-since number" title={Number.isNaN(since) ? '' : bothTimes(since)}>
        {Number.isNaN(since) ? '–' : age(now - since)}
      </Cell>
      <Cell class="c-model cut">
        <Answering record={record} />
      </Cell>
      <Cell class="c-turn cut">
        <LastTurn record={record} now={now} />
      </Cell>
      <Cell class="c-trouble">
        <Trouble workspace={workspace} />
      </Cell>
      <Cell class="acts">
        <Acts store={store} workspace={workspace} tabIndex={isSelected ? 0 : -1} act={act} />
      </Cell>
    </>
  );
}

/** The whole first problem, the command that helps, and the number of further problems. */
function Trouble({ workspace }: { readonly workspace: Shown }) {
  const { look, problems, record } = workspace;
  const text = troubleOf(workspace);
  const next = problems[0]?.next;
  const waiting = record.pendingApprovals;
  return (
    <>
      {text !== '' && <span class={look.tone === 'danger' ? 'danger' : ''}>{text}</span>}
      {typeof next === 'string' && (
        <>
          {' '}
          <span aria-hidden="true">→</span> <code>{next}</code>
        </>
      )}
      {problems.length > 1 && <span class="quiet"> {moreProblems(problems.length)}</span>}
      {waiting > 0 && (
        <a class="warn" href={href({ view: 'inbox' })}>
          {counted(waiting, 'approval')} waiting
        </a>
      )}
    </>
  );
}
