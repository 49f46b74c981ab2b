import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { DashboardSession } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { Command } from '../../app/commands.ts';
import { Empty } from '../../parts/empty.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { Banner } from '../../parts/state-banner.tsx';
import { type ListHandle, VirtualList } from '../../parts/virtual-list.tsx';
import { Peek } from './peek.tsx';
import { RemoveAll, RemoveOne } from './remove.tsx';
import { SessionCells, SessionHeader } from './row.tsx';
import { SessionTable } from './table-store.ts';
import { amount, titleOf } from './words.ts';

/** Every stored trace, those of sub-agents included. */
export function SessionsPage({ app }: { readonly app: App }) {
  const table = useMemo(() => new SessionTable(app), [app]);
  const list = useRef<ListHandle | null>(null);
  const asked = useSignal<DashboardSession | 'all' | undefined>(undefined);
  useEffect(() => table.start(), [table]);
  useLayoutEffect(() => {
    const commands = tableCommands(app, table, {
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
  const readOnly = app.page.value?.readOnly;
  const close = () => {
    asked.value = undefined;
  };
  return (
    <ListView
      app={app}
      class="sessions"
      title="Traces"
      filter={{
        label: 'Find traces',
        placeholder: 'Name, first input or key',
        text: table.text.value,
        onText: table.search,
        pills: (['running', 'failed'] as const).map((each) => ({
          key: each,
          label: each === 'running' ? 'Running' : 'With errors',
          isOn: table.status.value === each,
          toggle: () => table.filter(table.status.peek() === each ? undefined : each),
        })),
        summary: `${amount(sessions.length)}${table.hasMore.value ? '+' : ''}`,
      }}
      tools={
        <button
          type="button"
          class="plain"
          disabled={readOnly !== undefined || sessions.length === 0}
          title={readOnly ?? 'Delete all traces'}
          onClick={() => (asked.value = 'all')}
        >
          <Glyph name="bin" /> Delete all…
        </button>
      }
      state={{ error: table.error, at: table.at, isLoaded: table.at.value !== null, reload: table.reload }}
      placeholderRows={12}
      notices={
        table.isOutOfOrder.value && (
          <Banner tone="neutral">
            <p>Newer activity exists: this list is no longer in order.</p>
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
        )
      }
      dialog={
        <>
          {asked.value === 'all' && <RemoveAll app={app} deletions={table.deletions} onClose={close} />}
          {asked.value !== undefined && asked.value !== 'all' && (
            <RemoveOne session={asked.value} deletions={table.deletions} onClose={close} />
          )}
        </>
      }
    >
      <div class={`sessions-body ${isPeeking ? 'with-peek' : ''}`}>
        <Rows app={app} table={table} list={list} />
        {isPeeking && <Peek app={app} table={table} session={selected} onRemove={() => (asked.value = selected)} />}
      </div>
    </ListView>
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
  const isComfortable = app.preferences.rows.value === 'comfortable';
  const selected = sessions.findIndex(({ sessionKey }) => sessionKey === table.selectedKey.value);
  return (
    <VirtualList
      label="Traces"
      recycles
      role="grid"
      class={table.error.value === null ? '' : 'stale'}
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
      <Empty title="No trace matches">
        <button
          type="button"
          onClick={() => {
            table.search('');
            table.filter(undefined);
          }}
        >
          Show all traces
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No trace yet" command='oratorio chat "hello"'>
      <p>Every conversation with the agent of this workspace leaves a trace here. Begin one:</p>
    </Empty>
  );
}

interface Reach {
  readonly focusList: () => void;
  readonly remove: (what: DashboardSession | 'all') => void;
}

function tableCommands(app: App, table: SessionTable, { focusList, remove }: Reach): Command[] {
  const group = 'Traces';
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
    { id: 'sessions.next', title: 'Select the next trace', group, keys: ['j'], run: () => step(1) },
    { id: 'sessions.previous', title: 'Select the previous trace', group, keys: ['k'], run: () => step(-1) },
    {
      ...{ id: 'sessions.open', title: 'Open the selected trace', group, isEnabled: hasSelection },
      run: () => open(app, selected()),
    },
    {
      ...{ id: 'sessions.peek', title: 'Look into the selected trace', group, keys: ['o'], isEnabled: hasSelection },
      run: () => table.select(table.selectedKey.peek(), !table.isPeeking.peek()),
    },
    {
      id: 'sessions.delete',
      title: 'Delete the selected trace',
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
