/** Commands that run without a question because they only read: never with a program or a library of the workspace. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, placeRules, RuleBook, ShellEnvironment } from '../../../src/agent/index.ts';
import { Config, type PermissionRule } from '../../../src/config/index.ts';
import type { ApprovalPolicy } from '../../../src/protocol/index.ts';
import { answers, call, say, service, talk } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

interface Scene {
  readonly command: string;
  /** Commands of the login shell; `WS` is the workspace. */
  readonly setup?: string;
  /** Variables of the user's shell. */
  readonly environment?: (workspacePath: string) => Readonly<Record<string, string>>;
  /** `PATH` of the server. */
  readonly path?: (workspacePath: string) => string;
  readonly policy?: ApprovalPolicy;
  readonly rules?: readonly PermissionRule[];
}

/** Runs one command in a workspace that has a `cat` and a `bash` of its own in `bin`. @returns its result for the model */
async function resultOf(t: Test, { command, setup = '', environment, path, policy = 'interrupt', rules = [] }: Scene) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  mkdirSync(join(workspacePath, 'bin'));
  for (const name of ['cat', 'bash']) {
    writeFileSync(join(workspacePath, 'bin', name), '#!/bin/sh\necho of the workspace\n', { mode: 0o755 });
  }
  writeFileSync(join(workspacePath, 'a.txt'), 'the file\n');
  const env = { PATH: path?.(workspacePath) ?? process.env['PATH'], HOME: home, SHELL: '/bin/bash' };
  const own = { environment: env, passEnvironment: [], secrets: [] };
  const shell = new ShellEnvironment({
    ...{ setup: setup.replaceAll('WS', workspacePath), timeoutMs: 600_000, settings: own },
    place: {
      ...{ sandbox: 'required', network: 'deny', home, environment: env },
      pathRules: { blockedPaths: [], protectedDirectories: [] },
    },
    onProblem: (problem) => t.fail(problem),
  });
  const settings = { ...own, shell, blockedPaths: [], home };
  const tools = createBuiltinTools({
    ...settings,
    tools: v.parse(Config, { Tools: { Shell: { Sandbox: 'off' } } }).Tools,
  });
  const { runtime, bugs } = service(answers([call('c', 'Exec', { command })], [say('done')]), {
    ...{ workspacePath, tools: () => tools },
    rules: new RuleBook({ configured: rules, stateDirectory: join(home, 'state'), places: placeRules(settings) }),
  });
  const { thread } = runtime.threads.start({
    config: { approvalPolicy: policy, ...(environment && { environment: environment(workspacePath) }) },
  });
  const { turn } = await talk(runtime, thread.id, 'go');
  t.same(bugs, []);
  return (
    (turn.items as readonly { type: string; text?: string }[]).find(({ type }) => type === 'toolResult')?.text ?? ''
  );
}

const refused = /needs an approval/;
const inFront = (workspacePath: string) => `${workspacePath}/bin:${process.env['PATH']}`;

t.test('regression: H49 a program of the workspace never counts as a reading command, in any PATH', async (t) => {
  const scenes: Readonly<Record<string, Omit<Scene, 'command'>>> = {
    'the login shell': { setup: 'export PATH="WS/bin:$PATH"' },
    "the user's shell": { environment: (ws) => ({ PATH: inFront(ws) }) },
    'the server': { path: inFront },
  };
  for (const [source, scene] of Object.entries(scenes)) {
    t.match(await resultOf(t, { ...scene, command: 'cat a.txt' }), refused, source);
    t.equal(await resultOf(t, { ...scene, command: 'head -1 a.txt' }), 'the file', `${source}: others still read`);
    const npm: PermissionRule = { Tool: 'Exec', Prefix: 'true x', Decision: 'allow' };
    t.match(
      await resultOf(t, { ...scene, rules: [npm], command: 'true x; cat a.txt' }),
      refused,
      `${source}: with a rule`,
    );
  }
  const relative = { setup: 'export PATH="bin:$PATH"', command: 'cat a.txt' };
  t.match(await resultOf(t, relative), refused, 'a relative directory');
  t.equal(await resultOf(t, { command: 'cat a.txt' }), 'the file', 'control');
  const asked = { environment: (ws: string) => ({ PATH: inFront(ws) }), policy: 'autoApprove' } as const;
  t.equal(
    await resultOf(t, { ...asked, command: 'cat a.txt; true | tee x' }),
    'of the workspace',
    'control: allowed by policy',
  );
});

t.test(
  'regression: H49 no variable of the project or of the shell makes a reading command run other code',
  async (t) => {
    const evil = 'touch stolen';
    const variables = {
      ...{ LD_LIBRARY_PATH: 'lib', LD_PRELOAD: './evil.so', LD_AUDIT: './evil.so', PYTHONPATH: 'lib', GEM_PATH: 'lib' },
      ...{
        NVM_DIR: 'x',
        CONDA_EXE: 'x',
        GCONV_PATH: 'lib',
        LOCPATH: 'lib',
        BASH_ENV: 'x.sh',
        ENV: 'x.sh',
        CDPATH: '/',
      },
      ...{ SHELLOPTS: 'xtrace', PS4: `$(${evil})`, RIPGREP_CONFIG_PATH: 'rc', 'BASH_FUNC_cat%%': `() { ${evil}; }` },
    };
    t.equal(await resultOf(t, { command: 'cat a.txt', environment: () => variables }), 'the file');
    const exports = Object.entries(variables).filter(
      ([name]) => /^\w+$/.test(name) && name !== 'SHELLOPTS' && name !== 'LD_PRELOAD',
    );
    const setup = `${exports.map(([name, value]) => `export ${name}='${value}'`).join('; ')}; cat() { echo evil; }; export -f cat`;
    t.equal(await resultOf(t, { command: 'cat a.txt', setup }), 'the file');
    t.equal(await resultOf(t, { command: 'ls', setup }), 'a.txt\nbin', 'nothing else has run');
  },
);

t.test('regression: H49 an exported function never takes the place of a program', async (t) => {
  const setup = 'cat() { echo evil; }; export -f cat';
  t.equal(await resultOf(t, { command: 'cat a.txt; true x', setup, policy: 'autoApprove' }), 'the file');
});
