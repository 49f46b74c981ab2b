/** Logs: the log of the agent server, or, on the page of the Hub, the output of the processes of any workspace. */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { AppServerRecord } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { copyText } from '../../parts/copy.tsx';
import { download, fileName } from '../../parts/download.ts';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { timeOfDay } from '../../parts/format.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { ListView } from '../../parts/list-view.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes } from '../../parts/time.ts';
import { type ListHandle, VirtualList } from '../../parts/virtual-list.tsx';
import { type Level, levels, type Row, search, textOf } from './lines.ts';
import './logs.css';
import { type Output, useTail } from './source.ts';

const rowHeight = 22;

export default function LogsView({ app }: { readonly app: App }) {
  return app.page.value?.kind === 'hub' ? <HubLogs app={app} /> : <Log app={app} output={null} />;
}

/** Logs of a Hub, with the choice of workspace, process and output. */
function HubLogs({ app }: { readonly app: App }) {
  const { data, error, at, reload } = useResource((signal) =>
    app.api.get<readonly AppServerRecord[]>('/v1/appservers', signal),
  );
  const { query } = app.router.route.value;
  if (!data.value) {
    return (
      <div class="view">
        <FaultBanner error={error.value} at={at.value} retry={reload} />
        {error.value === null && <Skeleton />}
      </div>
    );
  }
  // A workspace with a problem is the usual reason to read a log.
  const records = data.value.toSorted((a, b) => Number(isInTrouble(b)) - Number(isInTrouble(a)));
  const paths = records.map(({ canonicalWorkspacePath }) => canonicalWorkspacePath);
  const path = paths.find((each) => each === query['path']) ?? paths[0];
  if (path === undefined) {
    return (
      <Empty title="No workspace yet" command="oratorio up --init <dir>">
        <p>Each agent server writes its own log. Start one:</p>
      </Empty>
    );
  }
  const output: Output = {
    path,
    process: query['process'] === 'sidecar' ? 'sidecar' : 'server',
    stream: query['stream'] === 'stdout' ? 'stdout' : 'stderr',
  };
  return (
    <Log app={app} output={output}>
      <Pick label="Workspace" value={path} choices={paths} onPick={(chosen) => app.router.set({ path: chosen })} />
      <Pick
        label="Process"
        value={output.process}
        choices={['server', 'sidecar']}
        onPick={(chosen) => app.router.set({ process: chosen })}
      />
      <Pick
        label="Output"
        value={output.stream}
        choices={['stderr', 'stdout']}
        onPick={(chosen) => app.router.set({ stream: chosen })}
      />
    </Log>
  );
}

const isInTrouble = ({ problems }: AppServerRecord): boolean =>
  problems.some(({ code }) => code !== 'restricted' && code !== 'configChanged');

function Pick({
  label,
  value,
  choices,
  onPick,
}: {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly string[];
  readonly onPick: (choice: string) => void;
}) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onPick(event.currentTarget.value)}>
      {choices.map((choice) => (
        <option key={choice} value={choice}>
          {choice}
        </option>
      ))}
    </select>
  );
}

function Log({
  app,
  output,
  children,
}: {
  readonly app: App;
  readonly output: Output | null;
  readonly children?: preact.ComponentChildren;
}) {
  const tail = useTail(app, output);
  const { query } = app.router.route.value;
  const text = query['q'] ?? '';
  const level = levels.find((each) => each === query['level']) ?? levels[0];
  const wraps = useSignal(true);
  const follows = useSignal(true);
  const list = useRef<ListHandle | null>(null);
  const rows = search(tail.rows.value, level, text);
  const all = () => rows.map((row) => `${textOf(row)}\n`).join('');
  const toggleFollow = () => {
    follows.value = !follows.peek();
    if (follows.peek()) list.current?.scrollToEnd();
  };
  useLogKeys(app, {
    toggleFollow,
    toggleWrap: () => {
      wraps.value = !wraps.peek();
    },
  });
  const missing = tail.missing.value;
  return (
    <ListView
      app={app}
      class="logs"
      title="Logs"
      lead={children}
      filter={{
        label: 'Search the log',
        placeholder: 'Search the log',
        text,
        onText: (q) => app.router.set({ q }),
        summary: `${rows.length.toLocaleString()} of ${tail.rows.value.length.toLocaleString()}`,
      }}
      tools={
        <>
          <Pick
            label="Lowest level"
            value={level}
            choices={levels}
            onPick={(chosen) => app.router.set({ level: chosen === levels[0] ? undefined : chosen })}
          />
          <button type="button" aria-pressed={follows.value} title="Stay at the end (f)" onClick={toggleFollow}>
            <Glyph name="down" />
            Follow
          </button>
          <button
            type="button"
            aria-pressed={wraps.value}
            title="Break long lines (w)"
            onClick={() => {
              wraps.value = !wraps.value;
            }}
          >
            Wrap
          </button>
          <button
            type="button"
            class="bare"
            aria-label="Copy"
            title="Copy"
            disabled={rows.length === 0}
            onClick={() => copyText(app, all(), 'Log')}
          >
            <Glyph name="copy" />
          </button>
          <button
            type="button"
            class="bare"
            aria-label="Save"
            title="Save"
            disabled={rows.length === 0}
            onClick={() => download(fileName('log', 'txt'), all())}
          >
            <Glyph name="save" />
          </button>
        </>
      }
      state={{ error: tail.error, at: tail.at, isLoaded: rows.length > 0 || tail.at.value !== null }}
      notices={
        missing > 0 && <p class="banner neutral">{missing.toLocaleString()} earlier lines are no longer held.</p>
      }
    >
      <Lines tail={tail} rows={rows} wraps={wraps.value} follows={follows.value} list={list} />
    </ListView>
  );
}

function Lines({
  tail,
  rows,
  wraps,
  follows,
  list,
}: {
  readonly tail: ReturnType<typeof useTail>;
  readonly rows: readonly Row[];
  readonly wraps: boolean;
  readonly follows: boolean;
  readonly list: { current: ListHandle | null };
}) {
  if (rows.length > 0) {
    return (
      <VirtualList
        key={String(wraps)}
        class={wraps ? 'wraps' : 'runs'}
        label="Lines of the log, oldest first"
        count={rows.length}
        rowHeight={rowHeight}
        isMeasured={wraps}
        rowKey={(index) => rows[index]?.key ?? index}
        renderRow={(index) => {
          const row = rows[index];
          return row && <Line row={row} />;
        }}
        followsTail={follows}
        handle={list}
      />
    );
  }
  if (tail.rows.value.length > 0)
    return (
      <Empty title="No line fits">
        <p>Search for less, or at a lower level.</p>
      </Empty>
    );
  return (
    <Empty title="Nothing was written yet">
      <p>New lines are shown here at once.</p>
    </Empty>
  );
}

const tones: Readonly<Record<Level, string>> = {
  debug: 'quiet',
  info: 'neutral',
  warn: 'warn',
  error: 'danger',
};

function Line({ row }: { readonly row: Row }) {
  const { at, level, name, text } = row;
  const moment = at === undefined ? Number.NaN : Date.parse(at);
  return (
    <div class="line">
      {!Number.isNaN(moment) && (
        <time class="quiet" dateTime={at} title={bothTimes(moment)}>
          {timeOfDay(new Date(moment))}
        </time>
      )}
      {level !== undefined && <b class={tones[level]}>{level}</b>}
      {name !== undefined && <span class="quiet who cut">{name}</span>}
      <span class="said">{text}</span>
    </div>
  );
}

interface Actions {
  readonly toggleFollow: () => void;
  readonly toggleWrap: () => void;
}

function useLogKeys(app: App, actions: Actions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useLayoutEffect(() => {
    const group = 'Logs';
    return app.commands.register([
      { id: 'logs.follow', title: 'Follow the end', group, keys: ['f'], run: () => latest.current.toggleFollow() },
      { id: 'logs.wrap', title: 'Wrap long lines', group, keys: ['w'], run: () => latest.current.toggleWrap() },
    ]);
  }, [app]);
}
