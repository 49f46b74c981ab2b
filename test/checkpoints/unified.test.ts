import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { unifiedText } from '../../src/checkpoints/unified.ts';
import { bench, checkpointsOf, numbersFrom, runProgram, stateOf } from './tree-of-files.ts';

const programs = 40;

/** Tree with the permissions that a diff knows: whether the owner may execute a file. Directories without files do not belong to it. */
const inDiff = (root: string): readonly string[] =>
  stateOf(root).flatMap((line) => {
    if (/ directory \d+$/.test(line)) return [];
    const mode = / file (\d+) /.exec(line)?.[1];
    return mode === undefined
      ? [line]
      : [line.replace(` ${mode} `, (Number.parseInt(mode, 8) & 0o100) === 0 ? ' - ' : ' x ')];
  });

t.test('git apply makes the later tree of the earlier one with the diff of a turn', async (t) => {
  const place = bench(t);
  const { turn, checkpoints } = checkpointsOf(t, place);
  const other = mkdtempSync(join(tmpdir(), 'oratorio-diff-'));
  t.teardown(() => rmSync(other, { recursive: true, force: true }));
  const random = numbersFrom(7);
  const wrong: string[] = [];
  let changed = 0;
  for (let seed = 0; seed < programs; seed += 1) {
    place.write(`odd\t"${seed % 7}\\`, `quoted ${random(100)}\n`);
    place.write(`with space/${seed % 5}`, 'no newline at the end');
    const copy = join(other, String(seed));
    cpSync(place.root, copy, { recursive: true, verbatimSymlinks: true });
    const id = `turn_${seed}`;
    await turn(id, () => {
      runProgram(place.root, seed, 10, false);
      place.write(`odd\t"${(seed + 3) % 7}\\`, `quoted again ${random(100)}\n`);
      place.write(`with space/${seed % 5}`, 'no newline at the end either');
      place.write(`new directory/${random(3)}/new`, '');
    });
    const { diff = '', files } = await checkpoints.diff('thread', place.root, id, true);
    // Git leaves such contents out of a diff, too.
    if (files.some(({ isBinary }) => isBinary)) continue;
    changed += 1;
    const applied = spawnSync('git', ['apply', '--whitespace=nowarn', '--unsafe-paths', '-'], {
      cwd: copy,
      input: diff,
      encoding: 'utf8',
    });
    if (applied.status !== 0) wrong.push(`${seed}: ${applied.stderr}`);
    else if (JSON.stringify(inDiff(copy)) !== JSON.stringify(inDiff(place.root))) wrong.push(`${seed}: another tree`);
  }
  t.same(wrong, []);
  t.ok(changed > programs / 4, `control: ${changed} diffs were applied`);
});

t.test('patch makes the later tree of the earlier one with the diff of a turn', async (t) => {
  const place = bench(t);
  const { turn, checkpoints } = checkpointsOf(t, place);
  place.write('a.txt', 'one\ntwo\n');
  place.write('with space.txt', 'one\n');
  place.write('tab\tand "quote".txt', 'one\n');
  place.write('gone.txt', 'gone\n');
  const copy = join(place.root, '..', 'copy');
  cpSync(place.root, copy, { recursive: true });
  await turn('turn_001', () => {
    place.write('a.txt', 'one\ntwo and no newline');
    place.write('with space.txt', 'two\n');
    place.write('tab\tand "quote".txt', 'two\n');
    rmSync(place.at('gone.txt'));
    place.write('made/deep/new.txt', 'new\n');
    mkdirSync(place.at('empty'));
  });
  const { diff = '', files } = await checkpoints.diff('thread', place.root, 'turn_001', true);
  t.match(
    files.find(({ path }) => path === 'made'),
    { kind: 'directory' },
    'the summary names directories',
  );
  t.notMatch(diff, /mode 04/);
  const patched = spawnSync('patch', ['--strip=1', '--silent'], { cwd: copy, input: diff, encoding: 'utf8' });
  t.equal(patched.status, 0, patched.stdout);
  t.same(inDiff(copy), inDiff(place.root));
  t.notOk(readdirSync(copy).includes('empty'));
});

t.test('names that are not UTF-8 are escaped, and content that is not UTF-8 is not shown', async (t) => {
  const place = bench(t);
  const { turn, checkpoints } = checkpointsOf(t, place);
  place.write('latin1.txt', Buffer.from([0x67, 0x72, 0xfc, 0x6e, 0x0a]));
  await turn('turn_001', () => {
    spawnSync('bash', ['-c', "echo x > $'\\xff\\xfe'; echo x > grün"], { cwd: place.root });
    place.write('latin1.txt', Buffer.from([0x67, 0x72, 0xfc, 0x6e, 0x65, 0x0a]));
  });
  const { diff = '' } = await checkpoints.diff('thread', place.root, 'turn_001', true);
  t.match(diff, 'diff --git "a/\\377\\376" "b/\\377\\376"\n');
  t.match(diff, 'diff --git a/grün b/grün\n');
  t.match(diff, 'Binary files a/latin1.txt and b/latin1.txt differ\n');
});

t.test('a file of 200,000 changed lines is shown in full', async (t) => {
  const lines = Array.from({ length: 200_000 }, () => '+a');
  const after = { kind: 'file', mode: 0o644, hash: 'h', target: null, size: 400_000 } as const;
  const hunks = [{ oldStart: 1, oldLines: 0, newStart: 1, newLines: lines.length, lines }];
  const patch = { oldFileName: 'a', newFileName: 'a', oldHeader: undefined, newHeader: undefined, hunks };
  const text = unifiedText({ path: 'a', before: undefined, after, patch }, () => undefined);
  t.equal(text.split('\n').filter((line) => line === '+a').length, lines.length);
});
