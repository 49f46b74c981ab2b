/** Jobs and tasks as lines for people. */
import type { Automation, AutomationRun } from '../../protocol/index.ts';
import type { Output } from '../output.ts';
import { columns, inLine, pairs } from '../render.ts';

type Painted = Pick<Output, 'colors' | 'width'>;
type Colors = Output['colors'];

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** `in 3 hours`, `2 days ago`, `now`. */
export function relative(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  const found = units.find(([, length]) => Math.abs(ms) >= length);
  if (!found) return Math.abs(ms) < 10_000 ? 'now' : ms > 0 ? 'in less than a minute' : 'less than a minute ago';
  const [unit, length] = found;
  const count = Math.round(Math.abs(ms) / length);
  const words = `${count} ${unit}${count === 1 ? '' : 's'}`;
  return ms > 0 ? `in ${words}` : `${words} ago`;
}

/** Local time, to the minute. */
function local(at: string): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

function lastOf({ recentRuns }: Automation, now: number): string {
  const last = recentRuns.find(({ status }) => status !== 'missed');
  if (!last) return '-';
  return `${last.status} ${relative(last.finishedAt ?? last.startedAt ?? last.scheduledFor, now)}`;
}

/** Time on the clock of a schedule, to the minute, with the name of its zone. */
function inZone(at: string, { schedule }: Automation): string {
  const own = schedule && 'timeZone' in schedule ? schedule.timeZone : undefined;
  const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: own }).resolvedOptions();
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  return `${format.format(new Date(at))} ${timeZone}`;
}

/** One line per automation, with its next and its last run. */
export function listLines(automations: readonly Automation[], now: number, output: Painted): string[] {
  const rows = automations.map((automation) => {
    const { id, name, state, nextRunAt, scheduleText } = automation;
    return [id, state, nextRunAt ? relative(nextRunAt, now) : '-', lastOf(automation, now), scheduleText, name];
  });
  return columns(['ID', 'STATE', 'NEXT', 'LAST', 'SCHEDULE', 'NAME'], rows, output);
}

function colouredStatus({ status }: AutomationRun, { green, red, yellow, dim }: Colors): string {
  const padded = status.padEnd(9);
  switch (status) {
    case 'completed':
      return green(padded);
    case 'failed':
      return red(padded);
    case 'running':
      return yellow(padded);
    default:
      return dim(padded);
  }
}

/** One run with its result. */
export function runLine(run: AutomationRun, colors: Colors): string {
  const { scheduledFor, attempt, coalesced, durationMs, result, error, trigger } = run;
  const facts = [
    ...(durationMs === undefined ? [] : [`${(durationMs / 1_000).toFixed(1)} s`]),
    ...(attempt > 1 ? [`try ${attempt}`] : []),
    ...(coalesced > 1 ? [`${coalesced} due times`] : []),
    ...(trigger === 'manual' ? ['by hand'] : []),
  ].join(', ');
  const what = error ? `${error.code}: ${error.message}` : (result ?? '').split('\n', 1)[0];
  return `${colors.dim(local(scheduledFor))}  ${colouredStatus(run, colors)}  ${colors.dim(facts.padEnd(14))}  ${inLine(what ?? '')}`.trimEnd();
}

/** All relevant facts about one automation. */
export function showLines(automation: Automation, now: number, colors: Colors): string[] {
  const { id, kind, name, prompt, scheduleText, state, upcoming, failures, binding, model, approvalPolicy } =
    automation;
  const where = { new: 'a new conversation each time', own: 'a conversation of its own', thread: '' }[binding.mode];
  const rows: (readonly [string, string])[] = [
    ['id', `${id}  ${colors.dim(kind === 'cron' ? 'job' : 'task')}`],
    ['state', state],
    ['schedule', scheduleText],
    ...upcoming.map((at, index): [string, string] => [
      index === 0 ? 'next' : '',
      `${inZone(at, automation)}  ${colors.dim(relative(at, now))}`,
    ]),
    ['says', prompt.split('\n', 1)[0] ?? ''],
    ['in', binding.mode === 'thread' ? binding.threadId : where],
    ...(model === undefined ? [] : ([['model', model]] as const)),
    ['approvals', approvalPolicy ?? 'interrupt (calls that need one are declined)'],
    ...(failures === 0 ? [] : ([['failures', colors.red(`${failures} in a row`)]] as const)),
  ];
  const runs = automation.recentRuns.map((run) => `  ${runLine(run, colors)}`);
  return [colors.bold(inLine(name)), ...pairs(rows, colors), ...(runs.length > 0 ? ['', ...runs] : [])];
}
