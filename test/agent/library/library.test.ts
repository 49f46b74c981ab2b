/** Search, reading and expansion of skills and prompt commands. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { createSkillTool, Library, listDescribed } from '../../../src/agent/index.ts';
import { expand } from '../../../src/agent/library/commands.ts';
import { call, temporaryWorkspace } from '../tools/run-tool.ts';

const skill = (name: string, description: string, body = 'Do it.') =>
  `---\nname: ${name}\ndescription: ${description}\n---\n${body}\n`;

function place(t: Test, files: Readonly<Record<string, string>> = {}) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  for (const [path, text] of Object.entries(files)) {
    const file = path.startsWith('home/') ? join(home, path.slice(5)) : join(workspacePath, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return { workspacePath, home, library: new Library(home) };
}

t.test('skills of all three places are listed; one of the workspace hides one of the user', async (t) => {
  const { library, workspacePath } = place(t, {
    '.agents/skills/deploy/SKILL.md': skill('deploy', 'Deploys the shop.'),
    '.oratorio/skills/test/SKILL.md': skill('test', 'Tests it.'),
    'home/skills/deploy/SKILL.md': skill('deploy', 'Another one.'),
    'home/skills/notes/SKILL.md': skill('notes', '"Writes: notes"', 'Write\nnotes.'),
  });
  const { data, problems } = library.skills(workspacePath);
  t.match(data, [
    { name: 'deploy', description: 'Deploys the shop.', path: join(workspacePath, '.agents/skills/deploy/SKILL.md') },
    { name: 'test' },
    { name: 'notes', description: 'Writes: notes' },
  ]);
  t.same(problems, []);
  t.equal(library.skillBody('notes', workspacePath), 'Write\nnotes.');
  t.equal(library.skillBody('missing', workspacePath), undefined);
});

t.test('a broken skill is left out with the reason', async (t) => {
  const long = 'x'.repeat(1_025);
  const { library, workspacePath } = place(t, {
    '.agents/skills/a/SKILL.md': 'no head',
    '.agents/skills/b/SKILL.md': skill('other', 'x'),
    '.agents/skills/c/SKILL.md': '---\nname: c\ndescription: [\n---\n',
    '.agents/skills/d/SKILL.md': skill('d', long),
    '.agents/skills/E/SKILL.md': skill('E', 'x'),
    '.agents/skills/f--f/SKILL.md': skill('f--f', 'x'),
    '.agents/skills/g/SKILL.md': '---\nname: g\n---\n',
    '.agents/skills/h/SKILL.md': '---\nname: h\ndescription: &a [*a, *a]\n---\n',
    '.agents/skills/i/SKILL.md': '---\n- a\n---\n',
    '.agents/skills/j/README.md': 'no skill',
    '.agents/skills/k/SKILL.md': `${skill('k', 'x')}${'x'.repeat(70_000)}`,
    '.agents/skills/fine/SKILL.md': skill('fine', 'x'),
  });
  const { data, problems } = library.skills(workspacePath);
  t.same(
    data.map(({ name }) => name),
    ['fine'],
  );
  t.equal(problems.length, 10);
  for (const { problem } of problems) t.match(problem, /name|description|YAML|aliases|fields|larger/, problem);
});

t.test(
  'a directory with more heads than are read lists the first ones, and each can be used by its name',
  async (t) => {
    const head = (name: string) =>
      `---\nname: ${name}\ndescription: x\nmetadata: "${'y'.repeat(3_900)}"\n---\nBody of ${name}.\n`;
    const names = Array.from({ length: 40 }, (_, index) => `s${index + 10}`);
    const files = {
      ...Object.fromEntries(names.map((name) => [`.agents/skills/${name}/SKILL.md`, head(name)])),
      ...Object.fromEntries(names.map((name) => [`.oratorio/commands/${name}.md`, head(name)])),
      ...Object.fromEntries(names.map((name) => [`.oratorio/agents/${name}.md`, head(name)])),
      'home/skills/mine/SKILL.md': skill('mine', 'x'),
    };
    const { library, workspacePath } = place(t, files);
    for (const listed of [
      library.skills(workspacePath),
      library.commands(workspacePath),
      library.agentTypes(workspacePath),
    ]) {
      const ofWorkspace = listed.data.filter(({ name }) => name !== 'mine');
      t.equal(ofWorkspace.length, 16, '64 KiB of heads');
      t.equal(listed.problems.length, 24);
      t.match(listed.problems[0]?.problem, /beyond the limit of all heads/);
    }
    t.match(library.skills(workspacePath).data.at(-1), { name: 'mine' }, 'the user has a limit of their own');
    t.equal(library.skillBody('s49', workspacePath), 'Body of s49.');
    t.equal(library.expand('s49', '', workspacePath), 'Body of s49.');
  },
);

t.test('links out of a place, pipes and files without end are not read', async (t) => {
  const outside = place(t, { 'x/SKILL.md': skill('x', 'secret') });
  const { library, workspacePath } = place(t, {
    '.agents/skills/huge/SKILL.md': skill('huge', 'x'),
    '.oratorio/commands/a.md': 'A',
  });
  symlinkSync(join(outside.workspacePath, 'x'), join(workspacePath, '.agents/skills/x'));
  truncateSync(join(workspacePath, '.agents/skills/huge/SKILL.md'), 4 * 2 ** 30);
  symlinkSync(join(workspacePath, '.agents/skills/huge'), join(workspacePath, '.oratorio/commands/loop'));
  mkdirSync(join(workspacePath, '.agents/skills/pipe'));
  if (process.platform !== 'win32') execFileSync('mkfifo', [join(workspacePath, '.agents/skills/pipe/SKILL.md')]);
  t.same(library.skills(workspacePath).data, []);
  const linked = place(t);
  symlinkSync(outside.workspacePath, join(linked.workspacePath, '.agents'));
  t.same(linked.library.skills(linked.workspacePath).data, [], 'the place itself leads out of the workspace');
});

t.test('the tool reads a skill and the files beside it, and nothing else', async (t) => {
  const { library, workspacePath, home } = place(t, {
    '.oratorio/skills/deploy/SKILL.md': skill('deploy', 'x', 'See references/steps.md.'),
    '.oratorio/skills/deploy/references/steps.md': '1. Deploy.',
    '.oratorio/config.json': 'secret',
    'home/config.json': 'secret',
  });
  symlinkSync(join(home, 'config.json'), join(workspacePath, '.oratorio/skills/deploy/link'));
  const tool = createSkillTool(library);
  const run = (args: object) => call(tool, args, { workspacePath });
  t.match(await run({ name: 'deploy' }), { text: 'See references/steps.md.', isError: false });
  t.match(await run({ skill: 'deploy', file: 'references/steps.md' }), { text: '1. Deploy.', isError: false });
  for (const file of ['../../config.json', join(home, 'config.json'), 'link', '..', '', 'missing']) {
    t.match(await run({ name: 'deploy', file }), { isError: true }, file);
  }
  t.match(await run({ name: '../deploy' }), { isError: true });
});

t.test('a list of many skills is shortened evenly, then cut with their number', async (t) => {
  const some = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ name: `skill-${at}`, description: 'x'.repeat(1_000), path: '' }));
  const few = listDescribed(some(20));
  t.ok(few.length <= 8_000);
  t.equal(few.split('\n').length, 20);
  const many = listDescribed(some(1_000));
  t.ok(many.length <= 8_100);
  t.match(many, /\(\d+ more are left out\.\)$/);
});

t.test('commands are listed by their files, those of the workspace first', async (t) => {
  const { library, workspacePath } = place(t, {
    '.oratorio/commands/review.md': '---\ndescription: Reviews a file\nargument-hint: <file>\n---\nReview $1.',
    '.oratorio/commands/empty.md': '---\ndescription: x\n---\n',
    '.oratorio/commands/not a name.md': 'x',
    '.oratorio/commands/readme.txt': 'x',
    'home/commands/review.md': 'Mine.',
    'home/commands/plain.md': 'Say hello.\nTo $ARGUMENTS.',
  });
  const { data, problems } = library.commands(workspacePath);
  t.match(data, [
    { name: 'review', description: 'Reviews a file', argumentHint: '<file>' },
    { name: 'plain', description: 'Say hello.' },
  ]);
  t.equal(problems.length, 2);
  t.equal(library.expand('review', 'a.ts', workspacePath), 'Review a.ts.');
  t.equal(library.expand('plain', 'you all', workspacePath), 'Say hello.\nTo you all.');
  t.equal(library.expand('missing', '', workspacePath), undefined);
  t.equal(library.expand('../commands/review', '', workspacePath), undefined);
});

t.test('arguments are read as a shell reads words; missing ones are empty', (t) => {
  const words = '$1|$2|$3';
  for (const [given, expected] of [
    ['a b c', 'a|b|c'],
    ['"a b" c', 'a b|c|'],
    [`'a "b"' c`, 'a "b"|c|'],
    ['a\\ b c', 'a b|c|'],
    ['a"b c"d', 'ab cd||'],
    ['"a \\"b\\""', 'a "b"||'],
    ['"open end', 'open end||'],
    ['', '||'],
  ] as const) {
    t.equal(expand(words, given), expected, given);
  }
  t.end();
});

t.test('a template that names long arguments thousands of times is cut off', async (t) => {
  t.equal(expand('$ARGUMENTS'.repeat(6_000), 'x'.repeat(500_000)).length, 200_000);
  t.equal(expand(`${'a$1'.repeat(3)}b`, 'x'), 'axaxaxb');
});

t.test('the text of an argument is never expanded (property)', async () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[$A-Z0-9a-z]{0,40}$/), (text) => expand('<$ARGUMENTS>', text) === `<${text}>`),
  );
});

t.test('a text that begins with a known command becomes a reference with its text; other texts stay', async (t) => {
  const { library, workspacePath } = place(t, {
    '.oratorio/commands/review.md': 'Review $ARGUMENTS.',
    'home/skills/notes/SKILL.md': skill('notes', 'x', 'Write notes.'),
  });
  const resolve = (text: string) => library.resolve([{ type: 'text', text }], workspacePath)[0];
  t.same(resolve('/review a.ts "b c"'), {
    type: 'commandRef',
    name: 'review',
    argsText: 'a.ts "b c"',
    rawText: '/review a.ts "b c"',
    text: 'Review a.ts "b c".',
  });
  for (const text of ['/etc/hosts is wrong', '/unknown x', 'say /review', '/', '/review/x', '//review']) {
    t.same(resolve(text), { type: 'text', text }, text);
  }
  t.match(
    library.resolve(
      [
        { type: 'commandRef', name: 'review', argsText: 'x' },
        { type: 'skillRef', name: 'notes' },
        { type: 'skillRef', name: 'missing' },
      ],
      workspacePath,
    ),
    [{ text: 'Review x.' }, { text: 'Write notes.' }, { type: 'skillRef', name: 'missing', text: undefined }],
  );
});
