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
    ...{ restored, restoredTotal: 0, kept: ['k'], keptTotal: 1_000 },
    ...{ changedMeanwhile: [], changedMeanwhileTotal: 0, conflicts: [], conflictsTotal: 0 },
    ...{ notCovered: [], notCoveredTotal: 0, runningProcesses: [] },
  };
  const shown = restoredLines(answer);
  t.same(
    [shown[0], shown[51]],
    ['Restored 51 files and directories.', '  restored: 1 more'],
    'of a server without numbers',
  );
  t.equal(shown.at(-1), '  kept, changed by you or another conversation: 999 more');
  t.equal(restoredLines({ ...answer, restoredTotal: 3_000 })[0], 'Restored 3000 files and directories.');
  const cut = new JsonRpcError({ code, message, data: { conflicts, conflictsTotal: 4_000 } });
  const cutLines = conflictLines(cut) ?? [];
  t.match([cutLines[0], cutLines.at(-1)], [/4000 files were changed/, '  and 3950 more']);
});
