/** Rules about calls, those that users save, and those that approvals propose. */
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, placeRules, RuleBook, readSavedRules, savedRulesFile } from '../../../src/agent/index.ts';
import { proposeRule } from '../../../src/agent/rules/learn.ts';
import { matchesPattern } from '../../../src/agent/rules/match.ts';
import { Config, type PermissionRule } from '../../../src/config/index.ts';
import { tool } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

function place(t: Test, configured: readonly PermissionRule[] = []) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  const stateDirectory = join(home, 'state');
  mkdirSync(stateDirectory);
  const places = placeRules({ blockedPaths: [], home, environment: process.env });
  const book = new RuleBook({ configured, stateDirectory, places });
  const tools = createBuiltinTools({
    tools: v.parse(Config, {}).Tools,
    blockedPaths: [],
    passEnvironment: [],
    secrets: [],
    environment: process.env,
    home,
  });
  const judge = async (name: string, args: object) => {
    const found = tools.find((each) => each.name === name) ?? tool({ name });
    const parsed = found.parse(args);
    if (!parsed.ok) throw new Error(parsed.error);
    return (await book.judge(found, parsed.args, { workspacePath })).decision;
  };
  return { workspacePath, stateDirectory, book, judge };
}

t.test('a pattern of a file tool is about the real path in the workspace', async (t) => {
  const { judge, workspacePath } = place(t, [
    { Tool: 'WriteFile', Pattern: 'docs/*', Decision: 'allow' },
    { Tool: '*File', Pattern: 'keys/*', Decision: 'deny' },
  ]);
  mkdirSync(join(workspacePath, 'keys'));
  symlinkSync(join(workspacePath, 'keys'), join(workspacePath, 'docs'));
  t.equal(await judge('WriteFile', { path: 'docs/x', content: '' }), 'deny', 'a link leads elsewhere');
  t.equal(await judge('ReadFile', { path: './a/../keys/x' }), 'deny');
  t.equal(await judge('WriteFile', { path: 'src/x', content: '' }), undefined);
  const other = place(t, [{ Tool: 'WriteFile', Pattern: 'docs/*', Decision: 'allow' }]);
  t.equal(await other.judge('WriteFile', { path: 'docs/x', content: '' }), 'allow');
  t.equal(await other.judge('WriteFile', { path: 'docs/../x', content: '' }), undefined);
});

t.test('addresses, tools of servers, and whole tools can be ruled', async (t) => {
  const { judge } = place(t, [
    { Tool: 'WebFetch', Pattern: 'https://docs.example/*', Decision: 'allow' },
    { Tool: 'mcp__shop__*', Decision: 'ask' },
    { Tool: 'WebSearch', Decision: 'deny' },
  ]);
  t.equal(await judge('WebFetch', { url: 'https://docs.example/a' }), 'allow');
  t.equal(await judge('WebFetch', { url: 'https://docs.example.evil/a' }), undefined);
  t.equal(await judge('mcp__shop__buy', {}), 'ask');
  t.equal(await judge('mcp__other__buy', {}), undefined);
  t.equal(await judge('WebSearch', { query: 'x' }), 'deny');
});

t.test('an approval of a command proposes its program with a subcommand, and nothing that is broader', async (t) => {
  for (const [command, prefix] of [
    ['npm run build -- --watch', ['npm', 'run', 'build']],
    ['npm test', ['npm', 'test']],
    ['pnpm lint src', ['pnpm', 'lint']],
    ['cargo test --all', ['cargo', 'test']],
    ['go vet ./...', ['go', 'vet']],
    ['uv run pytest -q', ['uv', 'run', 'pytest']],
    ['pytest', ['pytest']],
    ['tsc', ['tsc']],
  ] as const) {
    t.same(await proposeRule(command), { tool: 'Exec', prefix }, command);
  }
  for (const command of [
    ...[
      'npm',
      'npm install x',
      'npm exec x',
      'npx x',
      'npm --prefix x run y',
      'npm run',
      'npm run --silent x',
      'npm publish',
    ],
    ...[
      'git status',
      'git push',
      'git',
      'node x.js',
      'python -c x',
      'sh',
      'bash -c x',
      'sudo npm test',
      'env npm test',
    ],
    ...[
      'npm test && rm x',
      'npm test; ls',
      'npm test | cat',
      'A=1 npm test',
      'npm test $x',
      'npm run $(x)',
      'pytest tests',
    ],
    ...['uv run python x', 'rm x', 'curl x', 'make', 'xargs npm test', 'time npm test', './x.sh', '', 'docker run x'],
  ]) {
    t.equal(await proposeRule(command), undefined, command);
  }
});

t.test('a rule that a user agreed to is saved in the state of the user, once, and holds at once', async (t) => {
  const { judge, book, stateDirectory } = place(t);
  t.equal(await judge('Exec', { command: 'npm run build' }), undefined);
  const rule = { tool: 'Exec', prefix: ['npm', 'run', 'build'] };
  book.learn(rule);
  book.learn(rule);
  t.equal(await judge('Exec', { command: 'npm run build -- --watch' }), 'allow');
  t.equal(await judge('Exec', { command: 'npm run deploy' }), undefined);
  t.equal(readSavedRules(stateDirectory).rules.length, 1);
  t.equal(statSync(savedRulesFile(stateDirectory)).mode & 0o777, 0o600);
});

t.test('a damaged file of saved rules allows nothing, asks about everything, and is not overwritten', async (t) => {
  const { judge, book, stateDirectory } = place(t, [{ Tool: 'Exec', Prefix: 'npm test', Decision: 'allow' }]);
  writeFileSync(savedRulesFile(stateDirectory), '{"version":1,"rules":[{"Tool":"Exec"', { mode: 0o600 });
  chmodSync(savedRulesFile(stateDirectory), 0o600);
  t.equal(await judge('Exec', { command: 'npm test' }), 'ask');
  t.equal(await judge('ReadFile', { path: 'x' }), 'ask');
  t.throws(() => book.learn({ tool: 'Exec', prefix: ['x'] }), /rules\.json is not JSON/);
  t.match(readFileSync(savedRulesFile(stateDirectory), 'utf8'), /"Tool":"Exec"$/);
});

t.test('patterns know * and ?, and nothing else', async (t) => {
  for (const [pattern, text, expected] of [
    ['*', '', true],
    ['a*', 'abc', true],
    ['*c', 'abc', true],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['a.c', 'abc', false],
    ['[a]', 'a', false],
    ['a**b', 'axb', true],
    ['*a*b', 'xaxaxb', true],
    ['a', 'ab', false],
  ] as const) {
    t.equal(matchesPattern(pattern, text), expected, `${pattern} ${text}`);
  }
});
