import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { DashboardSession } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { Command } from '../../app/commands.ts';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { Banner, FaultBanner } from '../../parts/state-banner.tsx';
import { type ListHandle, VirtualList } from '../../parts/virtual-list.tsx';
import { Peek } from './peek.tsx';
import { RemoveAll, RemoveOne } from './remove.tsx';
import { SessionCells, SessionHeader } from './row.tsx';
import { SessionTable } from './table-store.ts';
import { amount, titleOf } from './words.ts';

/** Every session with a trace. */
export function SessionsPage({ app }: { readonly app: App }) {
  const table = useMemo(() => new SessionTable(app), [app]);
  const box = useRef<HTMLInputElement>(null);
  const list = useRef<ListHandle | null>(null);
  const asked = useSignal<DashboardSession | 'all' | undefined>(undefined);
  useEffect(() => table.start(), [table]);
  useLayoutEffect(() => {
    const commands = tableCommands(app, table, {
      focusFilter: () => box.current?.focus(),
      focusList: () => list.current?.focus(),
      remove: (what) => {
        asked.value = what;
      },
    });
    return app.commands.register(commands);
  }, [table]);
  const sessions = table.sessions.value;
  const selected = sessions.find(({ sessionKey }) => sessionKey === table.selectedKey.value);
  const isPeeking = table.isPeeking.value && selected !== undefined;
  const close = () => {
    asked.value = undefined;
  };
  return (
    <div class="view sessions">
      <Tools app={app} table={table} box={box} onClear={() => (asked.value = 'all')} />
      <FaultBanner error={table.fault.value} at={table.loadedAt.value} retry={table.reload} />
      {table.isOutOfOrder.value && (
        <Banner tone="neutral">
          <p>There is newer activity: this list is not in order any more.</p>
          <button
            type="button"
            onClick={() => {
              table.reload();
              list.current?.scrollToIndex(0, 'start');
            }}
          >
            Sort again
          </button>
        </Banner>
      )}
      <div class={`sessions-body ${isPeeking ? 'with-peek' : ''}`}>
        {table.isLoaded.value ? <Rows app={app} table={table} list={list} /> : <Skeleton rows={12} />}
        {isPeeking && <Peek app={app} table={table} session={selected} onRemove={() => (asked.value = selected)} />}
      </div>
      {asked.value === 'all' && <RemoveAll app={app} deletions={table.deletions} onClose={close} />}
      {asked.value !== undefined && asked.value !== 'all' && (
        <RemoveOne session={asked.value} deletions={table.deletions} onClose={close} />
      )}
    </div>
  );
}

interface ToolsProps {
  readonly app: App;
  readonly table: SessionTable;
  readonly box: { current: HTMLInputElement | null };
  readonly onClear: () => void;
}

function Tools({ app, table, box, onClear }: ToolsProps) {
  const status = table.status.value;
  const readOnly = app.page.value?.readOnly;
  const count = table.sessions.value.length;
  return (
    <div class="strip">
      <h1>Sessions</h1>
      <FilterBar
        label="Find sessions"
        placeholder="Name, first input or key"
        text={table.text.value}
        onText={table.search}
        box={box}
        pills={(['running', 'failed'] as const).map((each) => ({
          key: each,
          label: each === 'running' ? 'Running' : 'With errors',
          isOn: status === each,
          toggle: () => table.filter(status === each ? undefined : each),
        }))}
        summary={`${amount(count)}${table.hasMore.value ? '+' : ''}`}
      />
      <button
        type="button"
        class="plain"
        disabled={readOnly !== undefined || count === 0}
        title={readOnly ?? 'Delete the traces of all sessions'}
        onClick={onClear}
      >
        <Glyph name="bin" /> Delete all…
      </button>
    </div>
  );
}

interface RowsProps {
  readonly app: App;
  readonly table: SessionTable;
  readonly list: { current: ListHandle | null };
}

function Rows({ app, table, list }: RowsProps) {
  const sessions = table.sessions.value;
  const now = app.now.value;
  if (sessions.length === 0) return <NoSessions table={table} />;
  const isComfortable = app.preferences.density.value === 'comfortable';
  const selected = sessions.findIndex(({ sessionKey }) => sessionKey === table.selectedKey.value);
  return (
    <VirtualList
      label="Sessions"
      recycles
      role="grid"
      class={table.fault.value === null ? '' : 'stale'}
      count={sessions.length}
      total={table.hasMore.value ? -1 : sessions.length}
      rowHeight={isComfortable ? 36 : 28}
      rowKey={(index) => sessions[index]?.sessionKey ?? index}
      header={<SessionHeader />}
      handle={list}
      selected={selected}
      onSelect={(index) => table.select(sessions[index]?.sessionKey, true)}
      onOpen={(index) => open(app, sessions[index])}
      onNearEnd={table.more}
      onAtTop={(isAtTop) => {
        table.isHeld.value = !isAtTop;
      }}
      rowProps={(index) => {
        const session = sessions[index];
        return { class: 'session-row', 'aria-label': session && titleOf(session) };
      }}
      renderRow={(index) => {
        const session = sessions[index];
        return session ? <SessionCells table={table} session={session} now={now} /> : null;
      }}
    />
  );
}

function open(app: App, session: DashboardSession | undefined): void {
  if (session) app.router.go({ view: 'sessions', path: [session.sessionKey] });
}

function NoSessions({ table }: { readonly table: SessionTable }) {
  if (table.text.value.trim() !== '' || table.status.value !== undefined) {
    return (
      <Empty title="No session matches">
        <button
          type="button"
          onClick={() => {
            table.search('');
            table.filter(undefined);
          }}
        >
          Show all sessions
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No session yet" command='oratorio chat "hello"'>
      <p>Every conversation with the agent of this workspace leaves a trace here. Begin one:</p>
    </Empty>
  );
}

interface Reach {
  readonly focusFilter: () => void;
  readonly focusList: () => void;
  readonly remove: (what: DashboardSession | 'all') => void;
}

function tableCommands(app: App, table: SessionTable, { focusFilter, focusList, remove }: Reach): Command[] {
  const group = 'Sessions';
  const selected = () => table.sessions.peek().find(({ sessionKey }) => sessionKey === table.selectedKey.peek());
  const hasSelection = () => selected() !== undefined;
  const mayChange = () => app.page.peek()?.readOnly === undefined;
  const step = (by: number) => {
    const sessions = table.sessions.peek();
    const at = sessions.findIndex(({ sessionKey }) => sessionKey === table.selectedKey.peek());
    table.select(sessions[Math.min(sessions.length - 1, Math.max(0, at + by))]?.sessionKey);
    // Enter then opens it.
    focusList();
  };
  return [
    { id: 'sessions.next', title: 'Select the next session', group, keys: ['j'], run: () => step(1) },
    { id: 'sessions.previous', title: 'Select the previous session', group, keys: ['k'], run: () => step(-1) },
    { id: 'sessions.filter', title: 'Find sessions', group, keys: ['/'], run: focusFilter },
    {
      ...{ id: 'sessions.open', title: 'Open the selected session', group, isEnabled: hasSelection },
      run: () => open(app, selected()),
    },
    {
      ...{ id: 'sessions.peek', title: 'Look into the selected session', group, keys: ['o'], isEnabled: hasSelection },
      run: () => table.select(table.selectedKey.peek(), !table.isPeeking.peek()),
    },
    {
      id: 'sessions.delete',
      title: 'Delete the trace of the selected session',
      group,
      keys: ['Delete'],
      isEnabled: () => hasSelection() && mayChange(),
      run: () => {
        const session = selected();
        if (session) remove(session);
      },
    },
    {
      ...{ id: 'sessions.deleteAll', title: 'Delete all traces', group, isEnabled: mayChange },
      run: () => remove('all'),
    },
    {
      ...{ id: 'sessions.close', title: 'Close the peek', group, keys: ['Escape'] },
      isEnabled: () => table.isPeeking.peek(),
      run: () => {
        table.select(table.selectedKey.peek(), false);
        focusList();
      },
    },
  ];
}
