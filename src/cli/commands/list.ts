import type { RecordAnswer } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { forksByWorkspace } from '../forks.ts';
import { withHub } from '../hub.ts';
import { inLine } from '../render.ts';
import { tableLines } from '../workspace-lines.ts';
import { distinctNames, forkRow, rowOf } from '../workspace-table.ts';

/** `oratorio list`: a table on a terminal, tab-separated rows elsewhere; forks follow their workspace. */
export async function run(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  const { records, forks, problems } = await withHub(context, async ({ hub }) => ({
    records: await hub.list({ signal }),
    forks: await forksByWorkspace(hub, signal),
    problems: (await hub.status({ signal })).problems,
  }));
  for (const { what, next } of problems) output.note(next === null ? what : `${what} → ${next}`);
  const forksOf = ({ canonicalWorkspacePath }: RecordAnswer) => forks.get(canonicalWorkspacePath) ?? [];
  if (output.json) {
    output.document(records.map((record) => ({ ...record, forks: forksOf(record) })));
    return exitCodes.ok.code;
  }
  if (records.length === 0) {
    output.note('The Hub knows no workspace yet. Begin with: oratorio up <workspace>');
    return exitCodes.ok.code;
  }
  const now = Date.now();
  const names = distinctNames(records);
  const rows = records.flatMap((record) => [
    rowOf(record, now, output.colors, names.get(record.canonicalWorkspacePath)),
    ...forksOf(record).map(forkRow),
  ]);
  if (output.isTTY) for (const line of tableLines(rows, output)) output.line(line);
  else for (const row of rows) output.line(row.map(cell).join('\t'));
  return exitCodes.ok.code;
}

/** Makes a value safe for one cell: it cannot begin another one. */
const cell = (text: string): string => inLine(text).replaceAll('\t', ' ');
