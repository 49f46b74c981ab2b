/** Records and events as lines for people. Nothing here shows a token. */
import type { ReceivedEvent, RecordAnswer, StatusAnswer } from '../client/index.ts';
import { dollars, visible } from '../lib/index.ts';
import { agentWords, exitCells, exitColumns, modelWords, stateWordOf } from '../protocol/index.ts';
import type { Output } from './output.ts';
import { unmarked } from './paint.ts';
import { withoutToken } from './without-token.ts';
import { lastTurnOf, paintedState } from './workspace-table.ts';

type Colors = Output['colors'];

/** A state in the colour of its tone. */
export function coloured(state: string, { green, yellow, red, dim }: Colors): string {
  switch (state) {
    case 'running':
      return green(state);
    case 'starting':
    case 'stopping':
    case 'allocated':
    case 'restartRequired':
      return yellow(state);
    case 'unhealthy':
    case 'exited':
    case 'unavailable':
      return red(state);
    default:
      return dim(state);
  }
}

/** Makes a value safe for one line: it cannot begin another one. */
export const inLine = (text: string): string => visible(text, { multiline: false });

/** Names and values, aligned. */
export const pairs = (rows: readonly (readonly [string, string])[], { dim }: Colors): string[] => {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return rows.map(([name, value]) => `  ${dim(inLine(name).padEnd(width))}${inLine(value)}`);
};

/** Below this width of a terminal a table that does not fit becomes a list. */
const narrowColumns = 60;

/**
 * Rows under a heading, aligned by their width without colour. In a narrow terminal: for each row its first cell, then a line
 * for each further cell, wrapped.
 */
export function columns(
  heading: readonly string[],
  cells: readonly (readonly string[])[],
  { colors: { dim }, width }: Pick<Output, 'colors' | 'width'>,
): string[] {
  const rows = cells.map((row) => row.map(inLine));
  const lengthOf = (cell: string) => unmarked(cell).length;
  const widths = heading.map((title, index) =>
    Math.max(title.length, ...rows.map((row) => lengthOf(row[index] ?? ''))),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, index) => cell + ' '.repeat(Math.max(0, (widths[index] ?? 0) - lengthOf(cell))))
      .join('  ')
      .trimEnd();
  const table = [line(heading), ...rows.map(line)];
  const isTooWide = width < narrowColumns && table.some((each) => lengthOf(each) > width);
  if (isTooWide) return rows.flatMap((row) => rowAsList(heading, row, width));
  return [dim(line(heading)), ...table.slice(1)];
}

function rowAsList(heading: readonly string[], [first = '', ...rest]: readonly string[], width: number): string[] {
  const further = rest.map((cell, index) => `  ${heading[index + 1]}: ${unmarked(cell)}`);
  return [unmarked(first), ...further].flatMap((text) => wrapped(text.trimEnd(), width));
}

const wrapped = (text: string, width: number): string[] => {
  const characters = Array.from(text);
  const count = Math.max(1, Math.ceil(characters.length / width));
  return Array.from({ length: count }, (_, index) => characters.slice(index * width, (index + 1) * width).join(''));
};

function serviceLines(record: RecordAnswer, colors: Colors): (readonly [string, string])[] {
  return Object.entries(record.serviceStatus).map(([name, { state, url, reason }]) => {
    const detail = url === null ? (reason ?? '') : withoutToken(url);
    return [
      name,
      `${coloured(state, colors)}  ${detail}${url !== null && reason !== null ? colors.dim(` (${reason})`) : ''}`,
    ];
  });
}

function trustRow({ trust, restrictedSettings }: RecordAnswer, { yellow }: Colors): (readonly [string, string])[] {
  if (trust === undefined) return [];
  const ignored = restrictedSettings.length === 0 ? '' : `: ${restrictedSettings.join(', ')} ignored`;
  return [['trust', ignored === '' ? trust : yellow(trust + ignored)]];
}

function troubleRows({ problems }: RecordAnswer, { red, bold }: Colors): (readonly [string, string])[] {
  return problems.flatMap(({ what, where, next }) => [
    ['trouble', red(where === null || what.includes(where) ? what : `${what} (${where})`)] as const,
    ...(next === null ? [] : [['', `→ ${bold(next)}`] as const]),
  ]);
}

/** Model, last turn, cost and pending approvals, without unknown values. */
function workRows(record: RecordAnswer, now: number): (readonly [string, string])[] {
  const { agent, model, lastTurn, costUsd, pendingApprovals } = record;
  return [
    ...(agent === null || agent.kind === 'oratorio' ? [] : [['agent', agentWords(agent)] as const]),
    ...(model === null ? [] : [['model', modelWords(model)] as const]),
    ...(lastTurn === null ? [] : [['last turn', lastTurnOf(record, now)] as const]),
    ...(costUsd === null || costUsd === 0 ? [] : [['cost', dollars(costUsd)] as const]),
    ...(pendingApprovals === 0 ? [] : [['waiting', `${pendingApprovals} for approval`] as const]),
  ];
}

/** All relevant facts about one workspace. */
export function recordLines(record: RecordAnswer, colors: Colors, now = Date.now()): string[] {
  const { bold, dim, red } = colors;
  const owner = record.startedByHub
    ? record.adopted
      ? 'adopted by the Hub'
      : 'managed by the Hub'
    : 'started by hand, not managed by the Hub';
  const word = stateWordOf(record);
  const phase = record.phase === word ? '' : dim(`  ${record.phase}`);
  // The last error is often the text of a problem: it is printed once.
  const isExplained = record.problems.some(
    ({ code, what }) => code === 'gaveUp' || record.lastError?.includes(what) === true,
  );
  const rows: (readonly [string, string])[] = [
    ['state', `${paintedState(word, colors)}${phase}`],
    ...troubleRows(record, colors),
    ...(record.pid === null ? [] : ([['process', `${record.pid}  ${dim(owner)}`]] as const)),
    ...workRows(record, now),
    ...(record.serverVersion === null ? [] : ([['version', record.serverVersion]] as const)),
    ...(record.restartCount === 0 ? [] : ([['restarts', String(record.restartCount)]] as const)),
    ...(record.nextAttemptAt === null ? [] : ([['next attempt', record.nextAttemptAt]] as const)),
    ...(record.exitCode === null ? [] : ([['exit code', String(record.exitCode)]] as const)),
    ...(record.lastError === null || isExplained ? [] : ([['last error', red(record.lastError)]] as const)),
    ...placeRow(record, colors),
    ...trustRow(record, colors),
    ...serviceLines(record, colors),
  ];
  const stderr = record.state === 'running' || !record.recentStderr ? [] : record.recentStderr.trimEnd().split('\n');
  return [
    bold(inLine(record.canonicalWorkspacePath)),
    ...pairs(rows, colors),
    ...exitLines(record, colors),
    ...stderr.map((line) => dim(`  │ ${inLine(line)}`)),
  ];
}

/** Place of an agent server that is not a process of this machine. */
function placeRow({ place }: RecordAnswer, { dim, red }: Colors): (readonly [string, string])[] {
  if (!place) return [];
  const lost = place.state === 'lost' ? red('  its engine does not answer') : '';
  return [
    ['place', `${inLine(place.kind)} of ${inLine(place.image ?? '?')}  ${dim(inLine(place.engine ?? ''))}${lost}`],
  ];
}

/** Table of the process ends that led to the current state. */
function exitLines({ incident }: RecordAnswer, colors: Colors): string[] {
  if (incident === null || incident.exits.length === 0) return [];
  return columns(exitColumns, incident.exits.map(exitCells), { colors, width: Number.POSITIVE_INFINITY }).map(
    (line) => `  ${line}`,
  );
}

export function statusLines(status: StatusAnswer, colors: Colors): string[] {
  const able = Object.entries(status.capabilities).filter(([, has]) => has === true);
  return [
    colors.bold(status.apiBaseUrl),
    ...pairs(
      [
        ['process', String(status.pid)],
        ['version', status.hubVersion],
        ['started', status.startedAt],
        ['state', status.statePath],
        ['can', able.map(([name]) => name).join(', ')],
      ],
      colors,
    ),
  ];
}

/** The parts of an event's data a person wants to see, in the order of the record. */
function detailOf(data: ReceivedEvent['data']): string {
  return Object.entries(data)
    .filter(([key, value]) => value !== null && key !== 'recentStderr')
    .map(([key, value]) => {
      if (typeof value === 'object')
        return Object.values(value as object)
          .map((part) => withoutToken(String(part)))
          .join(' ');
      const text = typeof value === 'string' ? withoutToken(value) : String(value);
      return key === 'error' || key === 'title' || key === 'body' ? text : `${key}=${text}`;
    })
    .filter((part) => part !== '')
    .join('  ');
}

const badKinds = new Set(['appserver.unhealthy', 'apiProxy.unhealthy', 'apiProxy.exited', 'hub.gap', 'hub.stopping']);

function colouredKind({ kind, data }: ReceivedEvent, { green, yellow, red, cyan }: Colors): string {
  const padded = kind.padEnd(19);
  if (kind.endsWith('.running') || kind === 'hub.started') return green(padded);
  if (kind === 'appserver.exited') return data['stopped'] === true ? yellow(padded) : red(padded);
  if (badKinds.has(kind)) return yellow(padded);
  return cyan(padded);
}

/** One line: local time, kind, workspace, details. */
export function eventLine(event: ReceivedEvent, colors: Colors, { showWorkspace = true } = {}): string {
  const at = new Date(event.at);
  const time = Number.isNaN(at.getTime()) ? event.at : at.toTimeString().slice(0, 8);
  const where = showWorkspace && event.workspacePath !== null ? `${event.workspacePath}  ` : '';
  const line = `${colors.dim(time)}  ${colouredKind(event, colors)}  ${where}${colors.dim(detailOf(event.data))}`;
  return inLine(line.trimEnd());
}
