import t from 'tap';
import { conflictLines, JsonRpcError, restoredLines } from '../../src/client/index.ts';
import { conflictWords, restoredWords, rpcErrors, takenBackWords } from '../../src/protocol/index.ts';

t.test('texts about files agree with their numbers', async (t) => {
  const texts: readonly (readonly [string, string])[] = [
    [restoredWords(0), 'No file had to be restored.'],
    [restoredWords(1), 'Restored 1 file or directory.'],
    [restoredWords(2), 'Restored 2 files and directories.'],
    [conflictWords(1), 'Nothing was restored, because 1 file was changed since'],
    [conflictWords(2), 'Nothing was restored, because 2 files were changed since'],
    [conflictWords(1, 'merged'), 'Nothing was merged, because 1 file was changed since'],
    [takenBackWords(1), 'The last turn is taken back.'],
    [takenBackWords(3), 'The last 3 turns are taken back.'],
  ];
  for (const [text, wanted] of texts) t.equal(text, wanted);
});

t.test('long lists of conflicts and paths are cut, and say so', async (t) => {
  const conflicts = Array.from({ length: 51 }, (_, at) => ({ path: `f${at}`, change: 'modified', by: 'user' }));
  const { code, message } = rpcErrors.restoreConflict;
  const lines = conflictLines(new JsonRpcError({ code, message, data: { conflicts } })) ?? [];
  t.same([lines.length, lines[0]], [52, 'Nothing was restored, because 51 files were changed since:']);
  t.same([lines[1], lines.at(-1)], ['  f0 (modified by you since)', '  and 1 more']);
  const restored = conflicts.map(({ path }) => path);
  const answer = {
    restoreId: 'restore_1',
    restored,
    kept: [],
    changedMeanwhile: [],
    conflicts: [],
    notCovered: [],
    notCoveredTotal: 0,
  };
  t.match(restoredLines({ ...answer, runningProcesses: [] }).at(-1), /restored: 1 more/);
});
