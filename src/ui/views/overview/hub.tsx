import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { age, splitPath } from '../../parts/format.ts';
import { Cell, ColumnHeader, HeaderRow } from '../../parts/grid.tsx';
import { Mark } from '../../parts/icons.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes } from '../../parts/time.ts';
import { fullState } from '../../parts/tone.ts';
import { type ListHandle, VirtualList } from '../../parts/virtual-list.tsx';
import { amount, counted } from '../sessions/words.ts';
import { Acts } from './acts.tsx';
import { Facts } from './facts.tsx';
import { Problems } from './problems.tsx';
import { Restriction } from './restriction.tsx';
import { Answering, capital, LastTurn } from './words.tsx';
import { type Action, type Shown, troubleOf, Workspaces } from './workspaces.ts';

/** Filters by the state of a workspace. */
const groups = [
  { key: 'trouble', label: 'Trouble', has: ({ look }: Shown) => look.tone === 'danger' || look.tone === 'warn' },
  { key: 'ready', label: 'Ready', has: ({ word }: Shown) => word === 'ready' },
  { key: 'stopped', label: 'Stopped', has: ({ word }: Shown) => word === 'stopped' || word === 'ended' },
] as const;

/** Most banners about restrictions: a Hub may have hundreds of workspaces, and their facts show the restriction, too. */
const maxBanners = 3;

/** Every workspace of this Hub: its state, and the actions on it. */
export function HubOverview({ app }: { readonly app: App }) {
  const store = useMemo(() => new Workspaces(app), [app]);
  const { query } = app.router.route.value;
  const box = useRef<HTMLInputElement>(null);
  const list = useRef<ListHandle | null>(null);
  const stopping = useSignal<string | undefined>(undefined);
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
      { id: 'hub.filter', title: 'Find workspaces', group, keys: ['/'], run: () => box.current?.focus() },
      {
        ...{ id: 'hub.close', title: 'Close the facts', group, keys: ['Escape'] },
        isEnabled: () => selectedPath !== undefined,
        run: () => select(undefined),
      },
    ]);
  }, [shown.length, selectedPath]);
  const act = (action: Action, path: string) => {
    if (action === 'stop') stopping.value = path;
    else void store.act(action, path);
  };

  return (
    <div class="view home">
      <HubStrip app={app} store={store} all={all} box={box} shown={shown.length} />
      <FaultBanner error={store.fault.value} at={null} retry={() => store.refresh()} />
      <Problems problems={store.status.value?.problems ?? []} tone="warn" />
      {selected === undefined &&
        store.restricted.value
          .slice(0, maxBanners)
          .map(({ canonicalWorkspacePath: path, restrictedSettings }) => (
            <Restriction key={path} path={path} settings={restrictedSettings} />
          ))}
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
      {stopping.value !== undefined && (
        <Confirm
          title="Stop this agent server?"
          action="Stop it"
          onClose={() => {
            stopping.value = undefined;
          }}
          onConfirm={() => {
            if (stopping.value !== undefined) void store.act('stop', stopping.value);
            stopping.value = undefined;
          }}
        >
          <p>
            <code>{stopping.value}</code>
          </p>
          <p>Turns that run in it are cancelled. Conversations and traces stay.</p>
        </Confirm>
      )}
    </div>
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

interface StripProps {
  readonly app: App;
  readonly store: Workspaces;
  readonly all: readonly Shown[];
  readonly shown: number;
  readonly box: { current: HTMLInputElement | null };
}

function HubStrip({ app, store, all, shown, box }: StripProps) {
  const status = store.status.value;
  const { query } = app.router.route.value;
  return (
    <div class="strip status">
      <h1>Workspaces</h1>
      <FilterBar
        label="Find workspaces"
        placeholder="Path, state or error"
        text={query['q'] ?? ''}
        onText={(text) => app.router.set({ q: text })}
        box={box}
        summary={shown === all.length ? amount(all.length) : `${amount(shown)} of ${amount(all.length)}`}
        pills={groups.map(({ key, label, has }) => ({
          key,
          label: `${label} ${amount(all.filter(has).length)}`,
          isOn: query['state'] === key,
          toggle: () => app.router.set({ state: query['state'] === key ? undefined : key }),
        }))}
      />
      {status && (
        <span
          class="quiet"
          title={`${status.apiBaseUrl}\n${status.statePath}\nsince ${bothTimes(Date.parse(status.startedAt))}`}
        >
          Hub {status.hubVersion} · process {status.pid} · up {age(app.now.value - Date.parse(status.startedAt))}
        </span>
      )}
    </div>
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
  if (!store.isLoaded.value) return <Skeleton rows={10} />;
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
        const workspace = shown[index];
        if (workspace?.state === 'running') void store.openDashboard(workspace.path);
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

/** The whole reason, and the command that helps. */
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
      {waiting > 0 && (
        <a class="warn" href={href({ view: 'inbox' })}>
          {counted(waiting, 'approval')} waiting
        </a>
      )}
    </>
  );
}
