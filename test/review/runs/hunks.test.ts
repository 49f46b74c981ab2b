/** Diff lines shown with a finding. Pure, except for the last tests. */
import t from 'tap';
import { parseDiff } from '../../../src/review/anchors/index.ts';
import { hunkAround } from '../../../src/review/runs/hunks.ts';
import { hunksFact } from '../../../src/review/store/index.ts';
import { changeTo, finding, World } from './world.ts';

/** A hunk from line 100 (old) and 200 (new): some lines of context, two removed, one added, context. */
function files(before: number, after: number, text = (at: number) => `line ${at}`, path = 'src/a.ts') {
  const context = (count: number, from: number) => Array.from({ length: count }, (_, at) => ` ${text(from + at)}`);
  return parseDiff(
    [
      `diff --git a/${path} b/${path}`,
      'index 1111111..2222222 100644',
      `--- a/${path}`,
      `+++ b/${path}`,
      `@@ -100,${before + 2 + after} +200,${before + 1 + after} @@ function around() {`,
      ...context(before, 0),
      `-${text(1_000)}`,
      `-${text(1_001)}`,
      `+${text(2_000)}`,
      ...context(after, 3_000),
      '',
    ].join('\n'),
  );
}
const inline = (line: number, side: 'RIGHT' | 'LEFT' = 'RIGHT', startLine?: number) =>
  ({ placement: 'inline', side, line, ...(startLine !== undefined && { startLine }) }) as const;

t.test('a hunk has twelve lines before and after the finding, with the numbers of both sides', async (t) => {
  const hunk = hunkAround(files(30, 30), 'src/a.ts', inline(230));
  t.equal(hunk?.lines.length, 12 + 1 + 12);
  t.match(hunk, { path: 'src/a.ts', oldStart: 120, newStart: 220 });
  t.strictSame(hunk?.lines[0], { kind: 'context', oldLine: 120, newLine: 220, text: 'line 20' });
  t.strictSame(hunk?.lines.slice(10, 13), [
    { kind: 'removed', oldLine: 130, text: 'line 1000' },
    { kind: 'removed', oldLine: 131, text: 'line 1001' },
    { kind: 'added', newLine: 230, text: 'line 2000' },
  ]);
  t.strictSame(hunk?.lines.at(-1), { kind: 'context', oldLine: 143, newLine: 242, text: 'line 3011' });
});

t.test('fewer lines at the end of a hunk', async (t) => {
  const hunk = hunkAround(files(2, 3), 'src/a.ts', inline(202));
  t.match(hunk, { oldStart: 100, newStart: 200 });
  t.equal(hunk?.lines.length, 2 + 3 + 3);
});

t.test('a finding about removed lines has lines of the old side', async (t) => {
  const hunk = hunkAround(files(30, 30), 'src/a.ts', inline(131, 'LEFT', 130));
  t.match(hunk, { oldStart: 118, newStart: 218 });
  t.equal(hunk?.lines.length, 12 + 2 + 12);
});

t.test('no hunk for a finding without a line in the diff', async (t) => {
  t.equal(hunkAround(files(2, 2), 'src/a.ts', { placement: 'file', reason: 'outsideDiff' }), undefined);
  t.equal(hunkAround(files(2, 2), 'src/a.ts', inline(900)), undefined);
  t.equal(hunkAround(files(2, 2), 'src/b.ts', inline(202)), undefined);
});

t.test('a hunk over 4 KiB drops the farthest lines first and retains the line of the comment', async (t) => {
  const long = 'x'.repeat(300);
  const bytes = (lines: readonly { text: string }[] = []) => lines.reduce((sum, { text }) => sum + text.length + 1, 0);
  const hunk = hunkAround(
    files(30, 30, () => long),
    'src/a.ts',
    inline(230),
  );
  t.ok(bytes(hunk?.lines) <= 4_096, 'bounded');
  t.ok(bytes(hunk?.lines) > 3_000, 'and not more than needed is left out');
  const at = hunk?.lines.findIndex(({ kind }) => kind === 'added') ?? -1;
  t.ok(Math.abs((hunk?.lines.length ?? 0) - 1 - at - at) <= 1, 'the same before and after');
  const huge = hunkAround(
    files(3, 3, () => 'y'.repeat(100_000)),
    'src/a.ts',
    inline(203),
  );
  t.match(huge?.lines.find(({ kind }) => kind === 'added')?.text, /^y{1000}…$/);
  t.ok((huge?.lines.length ?? 0) >= 1);
});

t.test('hunks are saved with the draft, without those of dropped findings', async (t) => {
  const world = await World.create(t);
  world.agent.findings = () => [finding(), finding({ severity: 'note', title: 'Small thing', oldText: 'start();' })];
  world.runs.start();
  const runId = await world.dispatch('manual');
  await world.ended(runId);
  const { findings = [] } = (await world.store.draftOfRun(runId)) ?? {};
  const hunks = JSON.parse((await world.store.fact(hunksFact(runId))) ?? '{}');
  t.strictSame(Object.keys(hunks), [findings[0]?.findingId]);
  t.match(Object.values(hunks), [
    {
      path: 'src/a.ts',
      lines: [{ text: 'start();' }, { kind: 'removed' }, { kind: 'added' }, { text: 'use(value);', newLine: 3 }],
    },
  ]);
});

t.test('lines with a possible secret are not saved, and invisible characters are removed', async (t) => {
  const token = ['ghp', 'q8Zt3LmX0vRb7NcKp2YwHs5JdFg9UeTa1CiO'].join('_');
  const world = await World.create(t);
  world.git.change = (head) => changeTo(head, 'src/a.ts', [`login('${token}');`]);
  world.runs.start();
  const secret = await world.dispatch('manual');
  await world.ended(secret);
  t.equal(await world.store.fact(hunksFact(secret)), undefined);
  t.match(await world.store.draftOfRun(secret), { findings: [{ line: 3 }] }, 'the finding is there all the same');

  world.forge.push('head-2');
  if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
  world.git.change = (head) => changeTo(head, 'src/a.ts', ['hidden(\u202e);']);
  const hidden = await world.dispatch('manual');
  await world.ended(hidden);
  t.match(await world.store.fact(hunksFact(hidden)), /"hidden\(\);"/);
});
