/** Records and events as lines for people. Nothing here shows a token. */
import type { ReceivedEvent, RecordAnswer, StatusAnswer } from '../client/index.ts';
import { visible } from '../lib/index.ts';
import type { Output } from './output.ts';

type Colors = Output['colors'];

/** An address without its token. */
export function withoutToken(url: string): string {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  parsed.search = '';
  parsed.hash = '';
  return parsed.href;
}

/** A state in the colour of how good it is. */
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

/** A value on its own line cannot begin another one. */
export const inLine = (text: string): string => visible(text, { multiline: false });

/** Names and values, aligned. */
export const pairs = (rows: readonly (readonly [string, string])[], { dim }: Colors): string[] => {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return rows.map(([name, value]) => `  ${dim(inLine(name).padEnd(width))}${inLine(value)}`);
};

/** Rows under a heading, aligned by what they look like without colour. */
export function columns(heading: readonly string[], cells: readonly (readonly string[])[], { dim }: Colors): string[] {
  const rows = cells.map((row) => row.map(inLine));
  const widths = heading.map((title, index) => Math.max(title.length, ...rows.map((row) => (row[index] ?? '').length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();
  return [dim(line(heading)), ...rows.map(line)];
}

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

/** Everything about one workspace worth a person's while. */
export function recordLines(record: RecordAnswer, colors: Colors): string[] {
  const { bold, dim, red } = colors;
  const owner = record.startedByHub
    ? record.adopted
      ? 'adopted by the Hub'
      : 'managed by the Hub'
    : 'not managed by the Hub';
  const phase = record.phase === record.state ? '' : dim(`  ${record.phase}`);
  const rows: (readonly [string, string])[] = [
    ['state', `${coloured(record.state, colors)}${phase}`],
    ...(record.pid === null ? [] : ([['process', `${record.pid}  ${dim(owner)}`]] as const)),
    ...(record.serverVersion === null ? [] : ([['version', record.serverVersion]] as const)),
    ...(record.restartCount === 0 ? [] : ([['restarts', String(record.restartCount)]] as const)),
    ...(record.nextAttemptAt === null ? [] : ([['next attempt', record.nextAttemptAt]] as const)),
    ...(record.exitCode === null ? [] : ([['exit code', String(record.exitCode)]] as const)),
    ...(record.lastError === null ? [] : ([['last error', red(record.lastError)]] as const)),
    ...trustRow(record, colors),
    ...serviceLines(record, colors),
  ];
  const stderr = record.state === 'running' || !record.recentStderr ? [] : record.recentStderr.trimEnd().split('\n');
  return [
    bold(inLine(record.canonicalWorkspacePath)),
    ...pairs(rows, colors),
    ...stderr.map((line) => dim(`  │ ${inLine(line)}`)),
  ];
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
