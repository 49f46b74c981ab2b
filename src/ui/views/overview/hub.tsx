import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
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
import { Answering, capital, LastTurn } from './words.tsx';
import { type Shown, troubleOf, type Workspaces, workspacesOf } from './workspaces.ts';

/** Filters by the state of a workspace. */
const groups = [
  { key: 'trouble', label: 'Trouble', has: ({ look }: Shown) => look.tone === 'danger' || look.tone === 'warn' },
  { key: 'ready', label: 'Ready', has: ({ word }: Shown) => word === 'ready' },
  { key: 'asleep', label: 'Asleep', has: ({ word }: Shown) => word === 'asleep' },
  { key: 'stopped', label: 'Stopped', has: ({ word }: Shown) => word === 'stopped' || word === 'ended' },
] as const;

/** Every workspace of this Hub: its state, and the actions on it. */
export function HubOverview({ app }: { readonly app: App }) {
  const store = workspacesOf(app);
  const { query } = app.router.route.value;
  const list = useRef<ListHandle | null>(null);
  const { act, question } = useStopQuestion(store);
  const [selectedPath, select] = useSelected(app);
  useEffect(() => store.start(), [store]);

  const all = store.all.value;
  const shown = all.filter((workspace) => matches(workspace, query['q'] ?? '', query['state']));
  const selected = all.find(({ path }) => path === selectedPath);
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
        text: query['q'] ?? '',
        onText: (text) => app.router.set({ q: text }),
        summary: shown.length === all.length ? amount(all.length) : `${amount(shown.length)} of ${amount(all.length)}`,
        pills: groups.map(({ key, label, has }) => ({
          key,
          label: `${label} ${amount(all.filter(has).length)}`,
          isOn: query['state'] === key,
          toggle: () => app.router.set({ state: query['state'] === key ? undefined : key }),
        })),
      }}
      tools={<HubFacts app={app} status={store.status.value} />}
      state={{ error: store.fault, isLoaded: store.isLoaded.value, reload: () => void store.refresh() }}
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

function matches(workspace: Shown, text: string, group: string | undefined): boolean {
  if (group !== undefined && !groups.find(({ key }) => key === group)?.has(workspace)) return false;
  const { path, word, states } = workspace;
  const all = `${path} ${word} ${states.join(' ')} ${troubleOf(workspace)}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

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
  readonly all: readonly Shown[];
  readonly shown: readonly Shown[];
  readonly selected: string | undefined;
  readonly select: (path: string | undefined) => void;
  readonly act: (action: Action, path: string) => void;
  readonly list: { current: ListHandle | null };
}

function Body({ app, store, all, shown, selected, select, act, list }: BodyProps) {
  const now = app.now.value;
  if (all.length === 0) {
    return (
      <Empty title="No workspace yet" command="oratorio up <dir>">
        <p>A workspace is a directory with an agent server of its own. This starts one and shows it here:</p>
      </Empty>
    );
  }
  if (shown.length === 0) {
    return (
      <Empty title="No workspace matches">
        <button type="button" onClick={() => app.router.set({ q: undefined, state: undefined })}>
          Show all {counted(all.length, 'workspace')}
        </button>
      </Empty>
    );
  }
  const isComfortable = app.preferences.density.value === 'comfortable';
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
        const page = shown[index]?.page;
        if (page) location.assign(page);
      }}
      rowProps={(index) => ({ class: 'workspace-row', 'aria-label': shown[index]?.path })}
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
  readonly act: (action: Action, path: string) => void;
}

function Row({ store, workspace, now, isSelected, act }: RowProps) {
  const { path, states, look, word, since } = workspace;
  const { head, tail } = splitPath(path);
  const record = store.factsOf(path);
  const restarts = record?.restartCount ?? 0;
  return (
    <>
      <Cell class="c-name cut" title={path}>
        <b>{tail}</b> <span class="quiet">{head}</span>
      </Cell>
      <Cell class="c-state">
        <span class={`pill ${look.tone}`} title={fullState(states)}>
          <Mark tone={look.tone} shape={look.shape} />
          {capital(word)}
        </span>
        {restarts > 0 && <span class="quiet"> {counted(restarts, 'restart')}</span>}
      </Cell>
      <Cell class="c-since number" title={Number.isNaN(since) ? '' : bothTimes(since)}>
        {Number.isNaN(since) ? '–' : age(now - since)}
      </Cell>
      <Cell class="c-model cut">{record ? <Answering record={record} /> : '–'}</Cell>
      <Cell class="c-turn cut">{record ? <LastTurn record={record} now={now} /> : '–'}</Cell>
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
  const waiting = record?.pendingApprovals ?? 0;
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
