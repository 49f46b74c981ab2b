/** External agents on the command line: installed ones, and the one of a workspace. No agent is started. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Writable } from 'node:stream';
import t, { type Test } from 'tap';
import { runCommandLine } from '../../src/cli/run.ts';
import { workspaceTrust } from '../../src/config/index.ts';
import { programEnvironment } from '../programs.ts';

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

/** A home with a package of codex in its search path, and an empty workspace. */
function place(t: Test) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-agents-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const [bin, workspace] = [join(home, 'codex', 'bin'), join(home, 'workspace')];
  for (const directory of [bin, workspace]) mkdirSync(directory, { recursive: true });
  writeFileSync(join(home, 'codex', 'package.json'), '{"name":"@agentclientprotocol/codex-acp","version":"9.8.7"}');
  writeFileSync(join(bin, 'codex-acp'), '#!/usr/bin/env node\n');
  chmodSync(join(bin, 'codex-acp'), 0o755);
  // Names of agents that are not programs, and a program of no package.
  const traps = join(home, 'traps');
  mkdirSync(join(traps, 'codex-acp'), { recursive: true });
  execFileSync('mkfifo', [join(traps, 'pi-acp')]);
  writeFileSync(join(traps, 'qwen'), '#!/bin/sh\n', { mode: 0o644 });
  writeFileSync(join(traps, 'package.json'), 'null');
  writeFileSync(join(traps, 'goose'), '#!/bin/sh\n', { mode: 0o755 });
  const env = {
    ...programEnvironment,
    HOME: home,
    ORATORIO_HOME: join(home, 'o'),
    PATH: ['', traps, bin].join(delimiter),
  };
  async function cli(...argv: string[]) {
    const [stdout, stderr] = [new Collected(), new Collected()];
    const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
    const code = await runCommandLine(argv, { stdout, stderr, env, cwd: home, interruption });
    return { code, stdout: stdout.text, stderr: stderr.text };
  }
  return { cli, home: join(home, 'o'), workspace, bin };
}

t.test('agents lists each preset with its version and the next step', async (t) => {
  const { cli } = place(t);
  const { stdout, code } = await cli('agents', '--json');
  t.equal(code, 0);
  const agents = JSON.parse(stdout) as { name: string }[];
  t.match(
    agents.find(({ name }) => name === 'codex'),
    { isInstalled: true, version: '9.8.7', approvals: 'asks' },
  );
  t.match(
    agents.find(({ name }) => name === 'pi'),
    { isInstalled: false, version: null, approvals: 'none' },
  );
  t.match(
    agents.find(({ name }) => name === 'qwen'),
    { isInstalled: false },
  );
  t.match(
    agents.find(({ name }) => name === 'goose'),
    { isInstalled: true, version: null },
  );
  const text = (await cli('agents')).stdout;
  t.match(text, /codex +9\.8\.7 +asks +log in: codex login/);
  t.match(text, /pi +no +does not ask +Install it with: npm install -g pi-acp/);
});

t.test('agents lists agents of the registry as not tried, and up --agent writes their command', async (t) => {
  const { cli, workspace, bin } = place(t);
  const listed = JSON.parse((await cli('agents', '--json')).stdout) as { name: string }[];
  t.match(
    listed.find(({ name }) => name === 'kimi'),
    { isInstalled: false, isTried: false, testedVersion: null, approvals: 'none' },
  );
  t.match(
    (await cli('agents')).stdout,
    /as of \d{4}-\d\d-\d\d.*\n.*TRIED.*[\s\S]*kimi +no +not tried +Install kimi: https:/,
  );
  t.match(await cli('up', workspace, '--init', '--agent', 'kimi'), { stderr: /not installed.\n.*Install kimi/ });
  writeFileSync(join(bin, 'kimi'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(join(bin, 'npx'), '#!/bin/sh\n', { mode: 0o755 });
  t.match(
    (await cli('agents')).stdout,
    /auggie +no: npx fetches \d\S+ +not tried +log in: /,
    'regression: an agent that npx fetches is not listed as installed',
  );
  const file = join(workspace, '.oratorio', 'config.json');
  const agent = () => JSON.parse(readFileSync(file, 'utf8')).Agent;
  await cli('up', workspace, '--init', '--agent', 'kimi', '--no-start');
  t.strictSame(agent(), { Name: 'kimi', Command: ['kimi', 'acp'] });
  await cli('up', workspace, '--agent', 'auggie', '--no-start');
  t.match(agent(), { Name: 'auggie', Command: ['npx', '--yes', /^@augmentcode\/auggie@\d/], Env: {} });
  await cli('up', workspace, '--agent', 'codex', '--no-start');
  t.strictSame(agent(), { Name: 'codex' }, 'the command of the other agent is gone');
  await cli('up', workspace, '--agent', 'oratorio', '--no-start');
  t.strictSame(agent(), {});
});

t.test(
  'up --agent refuses an unusable agent, and a trusted workspace without other requests stays trusted',
  async (t) => {
    const { cli, home, workspace } = place(t);
    const file = join(workspace, '.oratorio', 'config.json');
    t.match(await cli('up', workspace, '--init', '--agent', 'missing'), {
      code: 2,
      stderr: /There is no agent missing/,
    });
    t.match(await cli('up', workspace, '--init', '--agent', 'pi'), {
      stderr: /not installed.\n.*npm install -g pi-acp/,
    });
    t.notOk(existsSync(join(workspace, '.oratorio')), 'it is refused before a workspace is made');
    // No Hub is started: the choice is made before it is looked for.
    await cli('up', workspace, '--init', '--agent', 'codex', '--no-start');
    t.match(JSON.parse(readFileSync(file, 'utf8')), { Agent: { Name: 'codex' } });
    t.equal(workspaceTrust({ home, workspace }).trust, 'trusted');
    await cli('up', workspace, '--agent', 'oratorio', '--no-start');
    t.notOk(readFileSync(file, 'utf8').includes('codex'));
  },
);
