import { notCoveredLines, turnDiff } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { columns } from '../render.ts';
import { withThread } from '../thread-files.ts';

/** `oratorio diff` */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, signal } = context;
  const { turn, summary } = options;
  const format = summary === true ? 'summary' : 'unified';
  return withThread(context, async (server, threadId) => {
    const turnId = typeof turn === 'string' ? turn : undefined;
    const answer = await turnDiff(server, threadId, { turnId, format, signal });
    const { files, diff, isCut, notCovered, notCoveredTotal } = answer;
    for (const line of notCoveredLines(notCovered, notCoveredTotal)) output.note(line);
    if (files.length === 0 && notCovered.length === 0) output.note('No files have changed.');
    if (output.json) output.document({ threadId, turnId: turnId ?? null, ...answer });
    else if (format === 'unified') output.raw(diff ?? '');
    else {
      const rows = files.map(({ path, change, additions, deletions, isBinary }) => [
        ...[change, isBinary ? '' : `+${additions}`, isBinary ? '' : `-${deletions}`, path],
      ]);
      for (const row of columns(['CHANGE', 'ADDED', 'REMOVED', 'PATH'], rows, output)) output.line(row);
    }
    if (isCut) output.note('More has changed than is shown.');
    return exitCodes.ok.code;
  });
}
