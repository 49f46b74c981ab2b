/** Set-id bits at places that a search does not reach at once. Its cases with a sandbox are in rooms.test.ts. */
import { chmodSync, chownSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { SetIdSearch } from '../../../src/agent/tools/exec/set-id.ts';
import { canBecomeOther, otherUid } from '../../other-user.ts';
import { temporaryWorkspace } from './run-tool.ts';

const skip = process.platform !== 'linux' || !canBecomeOther;
const modeOf = (path: string) => statSync(path).mode & 0o7777;

/** A workspace of another user, with set-id files in directories that this user closes to itself. */
function closed(t: Test, others: number) {
  const root = temporaryWorkspace(t);
  const give = (path: string, mode: number) => {
    chownSync(path, otherUid, otherUid);
    chmodSync(path, mode);
  };
  const open = join(root, 'open');
  writeFileSync(open, '');
  give(open, 0o4755);
  const directories = ['a', 'a/b', 'c'].map((name) => join(root, name));
  const files = directories.map((directory) => {
    mkdirSync(directory);
    const file = join(directory, 's');
    writeFileSync(file, '');
    give(file, 0o6755);
    return file;
  });
  const many = join(root, 'many');
  mkdirSync(many);
  for (let at = 0; at < others; at += 1) writeFileSync(join(many, String(at)), '');
  const modes = [0o311, 0o011, 0o411];
  for (const [at, directory] of directories.entries()) give(directory, modes[at] ?? 0);
  give(root, 0o755);
  return { search: new SetIdSearch(root), open, directories, files, modes };
}

for (const [size, others] of [
  ['small', 0],
  ['large', 20_000],
] as const) {
  t.test(
    `regression: H52 set-id bits in directories that the user cannot read are cleared in a ${size} workspace`,
    { skip },
    async (t) => {
      const { search, open, directories, files, modes } = closed(t, others);
      process.seteuid?.(otherUid);
      const cleared = await search.clear({ sinceMs: 0, untilMs: Infinity }).finally(() => process.seteuid?.(0));
      t.strictSame([...cleared].sort(), [...files, open].sort());
      t.strictSame([open, ...files].map(modeOf), [0o755, 0o755, 0o755, 0o755]);
      t.strictSame(directories.map(modeOf), modes, 'the directories have their own rights again');
    },
  );
}

t.test('regression: H52 set-id bits behind more names than a report holds are cleared', { skip }, async (t) => {
  const root = temporaryWorkspace(t);
  const last = join(root, 'z');
  for (let at = 0; at < 20_000; at += 1) {
    const decoy = join(root, `${at}`.padStart(100, '_'));
    writeFileSync(decoy, '');
    chmodSync(decoy, 0o4755);
  }
  writeFileSync(last, '');
  chmodSync(last, 0o4755);
  const cleared = await new SetIdSearch(root).clear({ sinceMs: 0, untilMs: Infinity });
  t.ok(cleared.length > 1_000 && cleared.length < 20_001, 'control: the report is shorter');
  t.equal(modeOf(last), 0o755);
  t.equal(modeOf(join(root, '7'.padStart(100, '_'))), 0o755);
});
