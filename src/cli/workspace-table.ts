/** Workspaces as a table, for `list`. */
import type { RecordAnswer } from '../client/index.ts';
import { dollars, visible } from '../lib/index.ts';
import {
  agentWords,
  lastTurnWords,
  modelWords,
  moreProblems,
  type StateTone,
  sinceOf,
  stateWordOf,
  toneOfState,
} from '../protocol/index.ts';
import { type Fork, forkState } from './forks.ts';
import type { Output } from './output.ts';
import { withoutToken } from './without-token.ts';

type Colors = Output['colors'];

export const tableHeading = [
  'NAME',
  'STATE',
  'AGENT',
  'MODEL',
  'SINCE',
  'RESTARTS',
  'LAST TURN',
  'COST',
  'PAGE',
  'TROUBLE',
] as const;

const nothing = '–';

/** The word of a state in the colour of its tone. */
export function paintedState(word: string, { green, yellow, red, dim }: Colors): string {
  const paints: Readonly<Record<StateTone, (text: string) => string>> = {
    ok: green,
    warn: yellow,
    progress: yellow,
    danger: red,
    neutral: dim,
  };
  return paints[toneOfState(word)](word);
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** Age of a moment in its largest unit: `12 s`. A missing or unreadable time becomes a dash. */
export function ageOf(at: string | null, now: number): string {
  const ms = now - Date.parse(at ?? '');
  if (Number.isNaN(ms)) return nothing;
  const [unit, length] = units.find(([, size]) => ms >= size) ?? ['s', 1_000];
  return `${Math.max(0, Math.floor(ms / length))} ${unit}`;
}

export function lastTurnOf({ lastTurn, failuresInARow }: RecordAnswer, now: number): string {
  if (lastTurn === null) return nothing;
  return `${lastTurnWords(lastTurn, failuresInARow)}, ${ageOf(lastTurn.endedAt, now)} ago`;
}

/** The first problem and the command that helps, in one line; a note for a server that another program has started. */
export function troubleOf({ problems, state, startedByHub, pendingApprovals, turnsResumed }: RecordAnswer): string {
  const [problem] = problems;
  if (problem) {
    const next = problem.next === null ? '' : `→ ${problem.next}`;
    return [problem.what, next, moreProblems(problems.length)].filter(Boolean).join(' ');
  }
  const when = state === 'stopped' ? ' with the next start' : '';
  const resumed = turnsResumed === 1 ? `1 turn goes on${when}` : `${turnsResumed} turns go on${when}`;
  const notes = [
    ...(pendingApprovals > 0 ? [`${pendingApprovals} waiting for approval`] : []),
    ...(turnsResumed > 0 ? [resumed] : []),
  ];
  if (notes.length > 0) return notes.join(', ');
  return state === 'running' && !startedByHub ? 'started by hand' : '';
}

/** Path of the page of a workspace on the Hub; of an older Hub its own address, without a token. */
export const pageOf = ({ endpoints, page }: RecordAnswer): string =>
  page ?? (endpoints['dashboard'] === undefined ? nothing : withoutToken(endpoints['dashboard']));

type Named = Pick<RecordAnswer, 'canonicalWorkspacePath' | 'displayName'>;

/** Names by canonical path. Workspaces of the same name get the shortest ends of their paths that differ. */
export function distinctNames(records: readonly Named[]): ReadonlyMap<string, string> {
  const endOf = (path: string, depth: number) => path.split('/').filter(Boolean).slice(-depth).join('/');
  return new Map(
    records.map(({ canonicalWorkspacePath: path, displayName }) => {
      const others = records.filter(
        (other) => other.displayName === displayName && other.canonicalWorkspacePath !== path,
      );
      let depth = 1;
      const isShared = () => others.some((other) => endOf(other.canonicalWorkspacePath, depth) === endOf(path, depth));
      while (isShared() && endOf(path, depth) !== endOf(path, depth + 1)) depth += 1;
      return [path, depth === 1 ? displayName : endOf(path, depth)];
    }),
  );
}

/** One row. @param now milliseconds since the epoch */
export function rowOf(record: RecordAnswer, now: number, colors: Colors, name = record.displayName): string[] {
  const { model, agent, restartCount, costUsd } = record;
  return [
    name,
    paintedState(stateWordOf(record), colors),
    agent === null ? nothing : agentWords({ ...agent, version: null }),
    model === null ? nothing : modelWords(model),
    ageOf(sinceOf(record), now),
    String(restartCount),
    lastTurnOf(record, now),
    costUsd === null || costUsd === 0 ? nothing : dollars(costUsd),
    pageOf(record),
    troubleOf(record),
  ];
}

/** Longest name of a fork in the table. */
const maxNameChars = 40;

/** The row of a fork, below that of its workspace. */
export function forkRow(fork: Fork): string[] {
  const { name, race, page, directory } = fork;
  const agent =
    race?.agent === undefined ? '' : ` (${visible(race.agent, { multiline: false }).slice(0, maxNameChars)})`;
  const shown = race ? `attempt ${race.number}${agent}` : visible(name, { multiline: false }).slice(0, maxNameChars);
  const row = [`└ ${shown}`, forkState(fork), ...tableHeading.slice(2, -2).map(() => nothing), page];
  return [...row, `works in ${directory}`];
}
