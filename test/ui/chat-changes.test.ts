/** The page's review of changes: side by side, kept or put back file by file, over a real agent server. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from '../../src/cli/parse.ts';
import type { FileDiff } from '../../src/protocol/index.ts';
import { markOf } from '../../src/ui/views/chat/changes/kept-marks.ts';
import { pairsOf, rowsOfSection, sectionsOf } from '../../src/ui/views/chat/changes/sections.ts';
import { type RaceChoices, raceCommand } from '../../src/ui/views/chat/race/race-command.ts';
import { callTool, say, script } from '../agent/scripted-provider.ts';
import { Client, words } from '../appserver/harness.ts';
import { button, chatStage, openThread, write } from './chat-scene.ts';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import { shows } from './shows.ts';

const file = (path: string, more: Partial<FileDiff['files'][number]> = {}) =>
  ({ path, change: 'modified', kind: 'file', additions: 1, deletions: 1, isBinary: false, ...more }) as const;
const patch = (path: string, hunks: string, modes = '') =>
  `diff --git a/${path} b/${path}\n${modes}--- a/${path}\n+++ b/${path}\n${hunks}`;

t.test('a diff is divided by the names of its files, with any names and contents', async (t) => {
  const odd = 'a\n--- a/other\n+++ b/other\n@@ -1,1 +1,1 @@\n-x\n+y\ndiff --git a/b b/b';
  const hunk = '@@ -1,1 +1,1 @@\n-diff --git a/z b/z\n+--- a/z\n';
  const binary = 'diff --git a/pic b/pic\nBinary files a/pic and b/pic differ\n';
  const mode = 'diff --git a/run b/run\nold mode 100644\nnew mode 100755\n';
  const diff = patch(odd, hunk) + binary + mode + patch('last', hunk);
  const files = [file(odd), file('pic', { isBinary: true }), file('run'), file('last'), file('cut')];
  const sections = sectionsOf({ files, diff });
  t.same(
    sections.map(({ hunks, modes }) => [hunks, modes]),
    [
      [hunk, null],
      [null, null],
      [null, ['644', '755']],
      [hunk, null],
      [null, null],
    ],
  );
  const redacted = patch('config/[redacted]', hunk) + patch('last', hunk);
  t.same(
    sectionsOf({ files: [file('config/secret'), file('last')], diff: redacted }).map(({ hunks }) => hunks),
    [null, hunk],
    'a name that was redacted hides its own change only',
  );
});

t.test('a diff with quoted names, directories and a file that became a link is divided by its files', async (t) => {
  const name = 'tab\t"quote" and space';
  const hunk = '@@ -1,1 +1,1 @@\n-a\n+b\n';
  const quoted = String.raw`"a/tab\t\"quote\" and space"`;
  const diff = [
    `diff --git ${quoted} ${quoted.replace('a/', 'b/')}\n--- ${quoted}\t\n+++ ${quoted.replace('a/', 'b/')}\t\n${hunk}`,
    `diff --git a/l b/l\ndeleted file mode 100644\n--- a/l\n+++ /dev/null\n${hunk}`,
    `diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n${hunk}`,
    patch('last', hunk),
  ].join('');
  const files = [file(name), file('dir', { kind: 'directory' }), file('l'), file('last')];
  t.same(
    sectionsOf({ files, diff }).map(({ hunks }) => hunks),
    [hunk, null, hunk, hunk],
  );
});

t.test('removed lines are beside the added ones, long lines are cut, and a broken text has no rows', async (t) => {
  const long = 'x'.repeat(5_000);
  const hunks = `@@ -4,3 +4,4 @@\n a\n-b\n+c\n+${long}\n d\n`;
  const rows = rowsOfSection({ file: file('a.ts'), modes: null, hunks }) ?? [];
  t.same(
    pairsOf(rows).map(({ left, right }) => [
      left?.text.slice(0, 20) ?? null,
      left?.before,
      right?.text.length,
      right?.after,
    ]),
    [
      ['@@ -4 +4 @@', null, 11, null],
      ['a', 4, 1, 4],
      ['b', 5, 1, 5],
      [null, undefined, 2_024, 6],
      ['d', 6, 1, 7],
    ],
  );
  const emoji = rowsOfSection({
    file: file('a.ts'),
    modes: null,
    hunks: `@@ -1,0 +1,1 @@\n+${'x'.repeat(1_999)}👩‍👩‍👧‍👦\n`,
  });
  t.match(emoji?.at(-1)?.text, /^x{1999} … 11 more characters$/, 'regression: an emoji is not cut in half');
  t.equal(rowsOfSection({ file: file('a.ts'), modes: null, hunks: '@@ -1,9 +1,9 @@\n-cut' }), null);
});

t.test('the mark of a kept change belongs to this change alone', async (t) => {
  const section = { file: file('a.txt'), modes: null, hunks: '@@ -1,1 +1,1 @@\n-x\n+y\n' } as const;
  t.equal(markOf(section), markOf({ ...section }));
  const others = [
    { ...section, hunks: '@@ -1,1 +1,1 @@\n-x\n+z\n' },
    { ...section, modes: ['644', '755'] },
  ] as const;
  for (const other of others) t.not(markOf(other), markOf(section));
  t.equal(markOf({ ...section, hunks: null }), null, 'a change that cannot be shown has none');
});

t.test('choices of a race become one command whose words a shell reads unchanged', async (t) => {
  const choices: RaceChoices = {
    ...{ prompt: "--fix\nit's broken", check: 'npm test && echo "$HOME"', attempts: 2 },
    ...{ models: ' a/b , c', efforts: '', agents: 'oratorio , my $(agent)', isUnattended: false },
  };
  const command = raceCommand(choices, '/my site') ?? '';
  const words = execFileSync('sh', ['-c', `printf '%s\\0' ${command}`])
    .toString()
    .split('\0')
    .slice(0, -1);
  t.same(words, [
    ...['oratorio', 'race', '--workspace', '/my site', '--attempts', '2', '--check', 'npm test && echo "$HOME"'],
    ...['--agent', 'oratorio,my $(agent)', '--model', 'a/b,c', '--', "--fix\nit's broken"],
  ]);
  t.match(parse(words.slice(1)), { kind: 'run', argument: choices.prompt, options: { model: 'a/b,c', attempts: '2' } });
  for (const missing of [{ prompt: ' ' }, { check: '' }, { attempts: 9 }, { attempts: Number.NaN }]) {
    t.equal(raceCommand({ ...choices, ...missing }, '/site'), null);
  }
});

const { scene } = await chatStage();
const edit = (path: string, content: string) => callTool('WriteFile', { path, content });
const config = { Permissions: { DefaultApprovalPolicy: 'autoApprove' } };

scene(
  'changes of a turn are side by side, and each file is kept or put back; a conflict is listed and overwritten only when the person says so',
  {
    provider: script(
      [
        edit('made.txt', 'by the agent\n'),
        edit('evil\u202Etxt.js', 'let a = 1;\n\u001b[31m\n'),
        callTool('Exec', { command: 'mkfifo pipe' }),
      ],
      say('Made.'),
    ),
    config,
  },
  async (t, { page, served }) => {
    const made = join(served.path, 'made.txt');
    await write(page, 'Make them');
    const threadId = await openThread(page);
    await page.locator('.row-end').getByRole('link', { name: 'Changes' }).click();
    await page.getByRole('heading', { name: /^Changes of turn_/ }).waitFor();
    await page.getByText('2 files, +3 −0').waitFor();
    await page.getByText('Changed, but in no checkpoint').waitFor();
    await page.getByText('pipe (not a file, directory or link)').waitFor();
    await page.getByText('Outside of the workspace nothing is taken back').waitFor();
    const card = (name: string) => page.getByRole('region', { name });
    await card('evil<U+202E>txt.js').locator('.sides .added').first().waitFor();
    const text = (await page.locator('.changes').textContent()) ?? '';
    t.match(text, /␛\[31m/);
    t.notOk(text.includes('\u202e') || text.includes('\u001b'), 'what hides or reorders text is spelled out');
    t.same(await axe(page), []);
    t.same(await smallTargets(page), []);

    await button(page, 'Keep evil<U+202E>txt.js').click();
    await page.getByText('1 kept').waitFor();
    writeFileSync(made, 'by a person\n');
    await button(page, 'Revert made.txt').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('made.txt (modified by you)').waitFor();
    t.equal(readFileSync(made, 'utf8'), 'by a person\n', 'nothing was overwritten');
    await dialog.getByRole('button', { name: 'Leave it' }).click();
    await dialog.waitFor({ state: 'detached' });
    t.equal(readFileSync(made, 'utf8'), 'by a person\n');
    await button(page, 'Revert made.txt').click();
    await dialog.getByRole('button', { name: 'Overwrite' }).click();
    await page.getByText('1 kept, 1 put back').waitFor();
    t.notOk(existsSync(made));
    const second = await page.context().newPage();
    const { url, token } = served;
    await second.goto(`${url}/DashBoard#${new URLSearchParams({ token, at: new URL(page.url()).hash.slice(1) })}`);
    await second.getByText('1 kept, 1 put back').waitFor();
    await page.reload();
    await page.getByText('1 kept, 1 put back').waitFor();
    await button(page, 'Take back made.txt').click();
    await button(page, 'Revert made.txt').waitFor();
    t.equal(readFileSync(made, 'utf8'), 'by a person\n', 'the overwritten text is back');
    await second.getByText('3 −0, 1 kept', { exact: false }).waitFor();
    await button(second, 'Reconsider evil<U+202E>txt.js').click();
    await button(page, 'Keep evil<U+202E>txt.js').waitFor();
    await second.close();
    t.ok(existsSync(join(served.path, 'evil\u202Etxt.js')), 'the kept file was left');

    await page.getByRole('link', { name: 'All turns' }).click();
    await page.getByRole('heading', { name: 'Changes of all turns' }).waitFor();
    await page.getByText('2 files').waitFor();
    await page.getByRole('tab', { name: 'Changes' }).click();
    await page.getByRole('tabpanel').waitFor({ state: 'detached' });
    t.match(page.url(), `#/chat/${threadId}`);
  },
);

const lines = Array.from({ length: 3_000 }, (_, index) => `line ${index}`).join('\n');
scene(
  'on a phone a change is one column, and a large one is shown in parts; a new turn is added to the changes of the thread',
  {
    provider: script(edit('large.txt', lines), say('Made.'), edit('second.txt', 'two\n'), say('Made, too.')),
    config,
    context: { viewport: { width: 390, height: 844 }, hasTouch: true },
  },
  async (t, { page, served, go }) => {
    const client = await Client.ready(t, served.server.webSocketUrl);
    const { thread: empty } = await client.call('thread/start', { displayName: 'Nothing yet' });
    await go(`/chat/${empty.id}/changes`);
    await page.getByText('This conversation has changed no file', { exact: true }).waitFor();
    t.equal(await page.getByText('puts a file back').count(), 0, 'nothing to revert is explained');
    const threadId = await served.say('Make it large');
    await go(`/chat/${threadId}/changes`);
    await page.getByText('1 file, +3,000 −0').waitFor();
    t.equal(await page.locator('.diff').count(), 0, 'a large change is closed at first');
    await button(page, 'large.txt').click();
    await page.locator('.diff .added').first().waitFor();
    t.equal(await page.locator('.sides').count(), 0);
    t.ok((await page.locator('.diff .added').count()) <= 200);
    t.equal(await overflowsAt(page, 390), false);
    t.same(await axe(page), []);
    await client.call('turn/start', { threadId, input: words('And another') });
    await page.getByText('2 files').waitFor();
    await shows(t, 'equal', () => button(page, 'Revert second.txt').count(), 1);
  },
);

scene(
  'attempts of a race are side by side; one is applied and taken back, and changes of a person are overwritten only when they say so',
  {
    provider: script(
      ...['bad', 'good', 'worse'].flatMap((content) => [
        callTool('WriteFile', { path: 'a.txt', content }),
        say(`It is ${content}.`),
      ]),
    ),
    config: { ...config, Agent: { Kind: 'oratorio', Name: 'mine', Command: [process.execPath] } },
  },
  async (t, { page, served, go }) => {
    const a = join(served.path, 'a.txt');
    writeFileSync(a, 'before');
    const client = await Client.ready(t, served.server.webSocketUrl);
    const { thread } = await client.call('thread/start', { displayName: 'race: Make it good' });
    await go(`/chat/${thread.id}/race`);
    await page.getByText('Give a prompt, a check').waitFor();
    await page.getByLabel('Prompt').fill('Make it good');
    await page.getByLabel('Check', { exact: true }).fill('grep -q good a.txt');
    const command = page.locator('.copied-command code');
    await command.getByText(`--attempts 3 --check 'grep -q good a.txt' --yes -- 'Make it good'`).waitFor();
    await page.getByPlaceholder('oratorio,mine').fill('mine, oratorio');
    await command.getByText(`--attempts 3 --check 'grep -q good a.txt' --agent mine,oratorio --yes`).waitFor();
    t.same(await axe(page), []);
    const attempts: string[] = [];
    for (const number of [1, 2, 3]) {
      const { thread: fork } = await client.call('thread/fork', { threadId: thread.id, worktree: true });
      attempts.push(fork.id);
      const race = { number, check: 'grep -q good a.txt', state: 'working', agent: 'oratorio' };
      await client.call('thread/config/update', { threadId: fork.id, config: { race } });
    }
    await go(`/chat/${thread.id}`);
    await page.getByRole('link', { name: 'Race', exact: true }).click();
    const attempt = (number: number) => page.getByRole('region', { name: `Attempt ${number}` });
    await attempt(3).getByText('No result yet').waitFor();
    for (const [index, threadId] of attempts.entries()) {
      await client.call('turn/start', { threadId, input: words('Make it good') });
      await attempt(index + 1)
        .getByText('+1')
        .waitFor();
      const race = {
        number: index + 1,
        agent: 'oratorio',
        check: 'grep -q good a.txt',
        state: index === 1 ? 'passed' : 'failed',
      };
      await client.call('thread/config/update', { threadId, config: { race } });
    }
    const { thread: unbegun } = await client.call('thread/fork', { threadId: thread.id });
    const failure = { code: 'agentUnavailable', message: 'gone: its program is not installed\u202e' };
    const race = { number: 4, check: 'grep -q good a.txt', state: 'failed', agent: 'gone', failure };
    await client.call('thread/config/update', { threadId: unbegun.id, config: { race } });
    await attempt(4).getByText('Agent not available').waitFor();
    await attempt(4).getByText('gone: its program is not installed<U+202E>').waitFor();
    await shows(t, 'equal', () => button(page, 'Apply attempt 4').isDisabled(), true, 'it has no files');
    await shows(t, 'equal', () => attempt(1).getByText('oratorio', { exact: true }).count(), 1, 'the agent is named');
    await attempt(2).getByText('Check passed').waitFor();
    await attempt(1).getByText('Check failed').waitFor();
    t.equal(await overflowsAt(page, 390), false);
    t.same(await axe(page), []);
    await page.getByText('Outside of the workspace nothing is taken back').waitFor();
    await button(page, 'Apply attempt 2').click();
    await attempt(2).getByText('Applied').waitFor();
    t.equal(readFileSync(a, 'utf8'), 'good', 'exactly its change is applied');
    await shows(t, 'equal', () => button(page, 'Apply attempt 1').isDisabled(), true);
    writeFileSync(a, 'by a person');
    await button(page, 'Undo attempt 2').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('a.txt (modified by you)').waitFor();
    t.equal(readFileSync(a, 'utf8'), 'by a person');
    await dialog.getByRole('button', { name: 'Overwrite' }).click();
    await attempt(2).getByText('Check passed').waitFor();
    t.equal(readFileSync(a, 'utf8'), 'before');
    await attempt(3).getByRole('link', { name: 'Changes' }).click();
    await page.locator('.diff .added', { hasText: 'worse' }).waitFor();
    const again = await client.call('thread/fork', { threadId: attempts[0] });
    t.equal(again.thread.config?.race, undefined, 'a fork of an attempt is no attempt');
  },
);
