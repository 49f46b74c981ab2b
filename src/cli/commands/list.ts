import type { FleetListAnswer, HostAnswer, HubClient, RecordAnswer } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { forksByWorkspace } from '../forks.ts';
import { withHub } from '../hub.ts';
import { hostNamed, hostsOf } from '../remote.ts';
import { inLine } from '../render.ts';
import { tableLines } from '../workspace-lines.ts';
import { ageOf, distinctNames, forkRow, rowOf } from '../workspace-table.ts';

/** `oratorio list`: a table on a terminal, tab-separated rows elsewhere; forks follow their workspace. */
export async function run(context: CommandContext): Promise<number> {
  const { output, signal, options } = context;
  const only = typeof options['host'] === 'string' ? options['host'] : undefined;
  const { records, hosts, forks, problems } = await withHub(context, async ({ hub }) => ({
    ...(await recordsOf(hub, only, context)),
    forks: await forksByWorkspace(hub, signal),
    problems: (await hub.status({ signal })).problems,
  }));
  for (const { what, next } of problems) output.note(next === null ? what : `${what} → ${next}`);
  const forksOf = ({ canonicalWorkspacePath }: RecordAnswer) => forks.get(canonicalWorkspacePath) ?? [];
  for (const host of hosts) printHostNote(host, context);
  if (output.json) {
    output.document(records.map((record) => ({ ...record, forks: forksOf(record) })));
    return exitCodes.ok.code;
  }
  if (records.length === 0) {
    output.note('The Hub knows no workspace yet. Begin with: oratorio up <dir> --init');
    return exitCodes.ok.code;
  }
  const now = Date.now();
  const names = distinctNames(records.filter(({ host }) => typeof host !== 'string'));
  const rows = records.flatMap((record) => {
    if (typeof record.host === 'string') return [hostRow(record, record.host, now, output.colors)];
    const row = rowOf(record, now, output.colors, names.get(record.canonicalWorkspacePath));
    return [row, ...forksOf(record).map(forkRow)];
  });
  if (output.isTTY) for (const line of tableLines(rows, output)) output.line(line);
  else for (const row of rows) output.line(row.map(cell).join('\t'));
  return exitCodes.ok.code;
}

type ListedRecord = RecordAnswer & { readonly host?: string | null; readonly asOf?: string | null };

/** Workspaces of this machine, and of all hosts if there are any. @throws CliError hostUnknown */
async function recordsOf(
  hub: HubClient,
  only: string | undefined,
  context: CommandContext,
): Promise<{ readonly records: readonly ListedRecord[]; readonly hosts: readonly HostAnswer[] }> {
  const { signal } = context;
  if (only !== undefined) await hostNamed(hub, only, context);
  const hosts = await hostsOf(hub, signal);
  if (hosts.length === 0) return { records: await hub.list({ signal }), hosts };
  const records: ListedRecord[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const page: FleetListAnswer = await hub.fleet({ signal, after, ...(only !== undefined && { host: only }) });
    records.push(...page.appServers);
    after = page.next;
  }
  return { records, hosts: only === undefined ? hosts : hosts.filter(({ name }) => name === only) };
}

/** Formats a row of another machine: `build:site`, with the age of a state that is not current. */
function hostRow(
  record: ListedRecord,
  host: string,
  now: number,
  colors: CommandContext['output']['colors'],
): string[] {
  const row = rowOf(record, now, colors, `${host}:${record.displayName}`);
  const asOf = record.asOf ?? null;
  return asOf === null ? row : [...row.slice(0, -1), `as of ${ageOf(asOf, now)} ago. ${row.at(-1) ?? ''}`.trim()];
}

function printHostNote({ name, state, reason, next }: HostAnswer, { output }: CommandContext): void {
  if (state !== 'unreachable' && state !== 'refused') return;
  output.note(inLine(`${name} is ${state}: ${reason ?? ''}${next === null ? '' : ` → ${next}`}`));
}

/** Makes a value safe for one cell: it cannot begin another one. */
const cell = (text: string): string => inLine(text).replaceAll('\t', ' ');
