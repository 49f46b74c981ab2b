/** `oratorio context` as a process. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { program, programEnvironment } from '../programs.ts';

const run = promisify(execFile);
const arguments_ = ['--disable-warning=ExperimentalWarning', '--conditions=development', program('src/cli/main.ts')];

function place(t: Test) {
  const base = t.testdir({
    home: { 'AGENTS.md': 'Be brief.' },
    shop: {
      '.oratorio': {
        'config.json': JSON.stringify({ SystemPrompt: 'Answer in German.' }),
        agents: { 'mute.md': 'no head', 'reviewer.md': '---\ndescription: Reviews.\n---\nBe strict.\n' },
      },
      'AGENTS.md': 'Use tabs.',
      parser: { 'AGENTS.md': 'Here use spaces.', deep: {} },
    },
  });
  const env = { ...programEnvironment, HOME: base, ORATORIO_HOME: join(base, 'home') };
  return (...args: string[]) =>
    run(process.execPath, [...arguments_, 'context', ...args], { cwd: join(base, 'shop'), env });
}

t.test('in a directory of a workspace, all parts are printed with their sizes', async (t) => {
  const { stdout, stderr } = await place(t)('parser/deep');
  t.match(stdout, /PART +BYTES +TOKENS/);
  t.match(stdout, /parser\/AGENTS\.md +16 +≈ 4/);
  for (const words of ['Be brief.', 'Use tabs.', 'Here use spaces.', 'Answer in German.', '- reviewer: Reviews.'])
    t.match(stdout, words);
  t.match(stdout, /<instructions path="\.oratorio\/config\.json">\s+Answer in German\./, 'not trusted: marked');
  t.match(stderr, /mute\.md is left out: it has no description/);
});

t.test('with --json, the parts have names, texts, bytes and tokens', async (t) => {
  const { stdout } = await place(t)('--json');
  const { parts, tools, nested, problems } = JSON.parse(stdout);
  t.match(parts[0], { name: 'role', text: String, bytes: Number, tokens: Number });
  t.ok(tools.bytes + parts.reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0) < 24 * 1024);
  t.same(nested, []);
  t.match(problems, [{ path: /mute\.md$/, problem: 'it has no description' }]);
});

t.test('outside of a workspace it fails with what to do', async (t) => {
  await t.rejects(place(t)('/'), { code: 4, stderr: /is in no workspace[\s\S]*oratorio init/ });
});
