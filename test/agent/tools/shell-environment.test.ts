/** The environment that a login shell and the project give to commands. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ShellEnvironment } from '../../../src/agent/index.ts';
import { createExec } from '../../../src/agent/tools/exec/exec.ts';
import type { SandboxMode } from '../../../src/agent/tools/index.ts';
import { findProgram } from '../../../src/lib/index.ts';
import { markerVariable } from '../../../src/supervise/index.ts';
import { scanProcesses } from '../../../src/supervise/scan.ts';
import { until } from '../../supervise/helpers.ts';
import { call, temporaryWorkspace } from './run-tool.ts';

interface Scene {
  readonly profile?: string;
  readonly setup?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly timeoutMs?: number;
  readonly sandbox?: SandboxMode;
  /** Sandbox of the command itself. */
  readonly execSandbox?: SandboxMode;
  /** The `PATH` of the server begins with `bin` of the workspace. */
  readonly hasOwnPrograms?: boolean;
}

/** `PATH` with the directories that a log-in adds on this machine, such as `/usr/games`. */
const loginPath = `${process.env['PATH']}:${spawnSync('/bin/bash', ['-lc', 'echo "$PATH"'], { env: {}, encoding: 'utf8' }).stdout.trim()}`;

/** A workspace, a home with a profile, and the variables that its commands get. */
function stage(t: Test, scene: Scene) {
  const { profile = '', setup = '', files = {}, secrets = [], timeoutMs = 600_000 } = scene;
  const { sandbox = 'required', execSandbox = 'off', hasOwnPrograms = false } = scene;
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  writeFileSync(join(home, '.bash_profile'), profile);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(workspacePath, path, '..'), { recursive: true });
    writeFileSync(join(workspacePath, path), content);
    chmodSync(join(workspacePath, path), 0o755);
  }
  const marker = `test-of-shell-${process.pid}`;
  const PATH = `${hasOwnPrograms ? `${workspacePath}/bin:` : ''}${loginPath}`;
  const environment = { PATH, HOME: home, SHELL: '/bin/bash', [markerVariable]: marker };
  const problems: string[] = [];
  const pathRules = { blockedPaths: [], protectedDirectories: [] };
  const settings = { environment, passEnvironment: [], secrets };
  const place = { ...settings, sandbox, network: 'deny', home, pathRules } as const;
  const shell = new ShellEnvironment({
    ...{ setup, timeoutMs, settings, place },
    onProblem: (problem) => problems.push(problem),
  });
  const exec = createExec({
    ...{ timeoutMs: 600_000, maxTimeoutMs: 600_000, maxOutputChars: 10_000, sandbox: execSandbox, network: 'deny' },
    ...{ home, pathRules, ...settings, shell },
  });
  const run = async (command: string) => (await call(exec, { command }, { workspacePath })).text;
  return { exec, run, shell, workspacePath, problems, marker, path: PATH };
}

t.test('a command gets the tool chains of the profile, and not its other variables', async (t) => {
  const profile =
    'export JAVA_HOME=/opt/java PATH="/opt/java/bin:/usr/bin:/bin" ADDRESS=here GH_TOKEN=ghp_of_the_profile';
  const { run, path, problems } = stage(t, { profile });
  t.equal(await run('echo "$JAVA_HOME|$ADDRESS|$GH_TOKEN|$PATH"'), `/opt/java|||/opt/java/bin:${path}`);
  t.strictSame(problems, []);
});

t.test('Tools.Shell.Setup and a virtual environment of the project count whole, but for secrets', async (t) => {
  const { run, workspacePath, path } = stage(t, {
    setup: 'export DATABASE=local API_TOKEN=abc OWN="a b"; words() { :; }; echo noise; echo warning >&2',
    files: {
      '.venv/bin/activate': 'VIRTUAL_ENV="$PWD/.venv"; PATH="$VIRTUAL_ENV/bin:$PATH"; export VIRTUAL_ENV PATH\n',
    },
  });
  t.equal(
    await run('echo "$DATABASE|$OWN|$API_TOKEN|$VIRTUAL_ENV|$PATH"'),
    `local|a b||${workspacePath}/.venv|${workspacePath}/.venv/bin:${path}`,
  );
});

t.test('direnv and mise on the path are asked', async (t) => {
  const bin = temporaryWorkspace(t);
  for (const [name, words] of [
    ['direnv', 'export FROM_DIRENV=$2'],
    ['mise', 'export FROM_MISE=$3'],
  ] as const) {
    writeFileSync(join(bin, name), `#!/bin/sh\necho "${words}"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const { run } = stage(t, { profile: `PATH="${bin}:$PATH"` });
  t.equal(await run('echo "$FROM_DIRENV $FROM_MISE"'), 'bash bash');
});

t.test('the shell runs once for a directory, with the first command', async (t) => {
  const { run, workspacePath } = stage(t, { setup: 'echo x >> runs' });
  t.notOk(existsSync(join(workspacePath, 'runs')));
  await Promise.all([run('true'), run('true')]);
  t.equal(await run('wc -l < runs'), '1');
});

t.test('tool chains of the shell that the user works in take the place of those of the server', async (t) => {
  const { exec, workspacePath, path } = stage(t, { setup: 'export PATH="/opt/setup:$PATH" JAVA_HOME=/opt/old' });
  const environment = {
    ...{ PATH: `/home/me/bin:${path}`, VIRTUAL_ENV: '/home/me/.venv', JAVA_HOME: '/opt/new' },
    ...{ LD_PRELOAD: '/tmp/evil.so', NVM_TOKEN: 'abc', ORATORIO_TOKEN: 'abc' },
  };
  const command = 'echo "$PATH|$VIRTUAL_ENV|$JAVA_HOME|$LD_PRELOAD$NVM_TOKEN$ORATORIO_TOKEN"';
  const { text } = await call(exec, { command }, { workspacePath, environment });
  t.equal(text, `/opt/setup:/home/me/bin:${path}|/home/me/.venv|/opt/new|`);
});

t.test('values of secrets stay out under any name', async (t) => {
  const { run } = stage(t, { setup: 'export PLAIN=sk-the-key-of-the-tests', secrets: ['sk-the-key-of-the-tests'] });
  t.equal(await run('echo "[$PLAIN]"'), '[]');
});

t.test('a setup that fails, exits or hangs is reported, and commands run all the same', async (t) => {
  const failing = stage(t, { setup: 'export GOOD=1; echo no such version >&2; false' });
  t.equal(await failing.run('echo "$GOOD"'), '1');
  t.match(failing.problems, [/Tools\.Shell\.Setup ended with 1: no such version/]);

  const exiting = stage(t, { setup: 'exit 3' });
  t.equal(await exiting.run('echo on'), 'on');
  t.match(exiting.problems, [/the shell ended early, with 3/]);

  const broken = stage(t, { setup: 'if then' });
  t.equal(await broken.run('echo on'), 'on');
  t.match(broken.problems, [/Tools\.Shell\.Setup ended with [12]: .*syntax error/s]);

  const hanging = stage(t, { setup: 'sleep 3200 & setsid sleep 3200', timeoutMs: 300 });
  t.equal(await hanging.run('echo on'), 'on');
  t.match(hanging.problems, [/took longer than 300 ms/]);
  await until('nothing of it is left', async () => {
    const left = await scanProcesses();
    return !left.some(
      ({ zombie, marker }) => !zombie && typeof marker === 'object' && marker.value.startsWith(hanging.marker),
    );
  });
});

t.test('a profile that floods or prints odd bytes does not hurt', async (t) => {
  const { run, problems } = stage(t, {
    profile: "printf 'hello\\0A=b\\n'; yes | head -c 3000000 >&2",
    setup: 'export FINE=1',
  });
  t.equal(await run('echo "$FINE|$A"'), '1|');
  t.strictSame(problems, []);
});

t.test('nothing of the workspace runs outside of the sandbox', async (t) => {
  const proof = join(temporaryWorkspace(t), 'proof');
  const script = `#!/bin/sh\n: > ${proof}\n: > inside\n`;
  const files = {
    ...{ '.venv/bin/activate': script, 'env.sh': script, 'relative.sh': script },
    ...{ 'bin/tool': script, 'bin/bwrap': script, 'bin/bash': script, 'bin/direnv': script, 'bin/env': script },
  };
  const profile = 'tool 2>/dev/null; . ./relative.sh 2>/dev/null; export JAVA_HOME=/opt/java\n';
  for (const sandbox of ['required', 'off'] as const) {
    const scene = stage(t, { profile, setup: '. ./env.sh; export DONE=1', files, sandbox, hasOwnPrograms: true });
    t.equal(await scene.run('echo "$JAVA_HOME|$VIRTUAL_ENV"'), `/opt/java|${scene.workspacePath}/.venv`, sandbox);
    t.notOk(existsSync(proof), `${sandbox}: no file of the workspace ran outside`);
    const isInside = existsSync(join(scene.workspacePath, 'inside'));
    t.equal(isInside, sandbox === 'required', 'control: the setup runs in the sandbox only');
    if (sandbox === 'off')
      t.match(scene.problems, [/^not run, .*Tools\.Shell\.Setup \(Tools\.Shell\.Sandbox is off\)/]);
  }
});

const compiler = findProgram('cc', process.env['PATH']) ?? '';
const hasNone = { skip: compiler === '' };
t.test('regression: H48 a library that the project names is loaded in the sandbox only', hasNone, async (t) => {
  for (const sandbox of ['off', 'required'] as const) {
    const proof = join(temporaryWorkspace(t), 'proof');
    const { exec, workspacePath } = stage(t, { setup: '. ./.env', execSandbox: sandbox });
    const source = [
      '#include <fcntl.h>\n#include <unistd.h>',
      'unsigned la_version(unsigned version) { return version; }',
      `__attribute__((constructor)) static void run(void) { close(open("${proof}", O_CREAT | O_WRONLY, 0600)); }`,
    ].join('\n');
    writeFileSync(join(workspacePath, 'library.c'), source);
    const library = join(workspacePath, 'library.so');
    const args = ['-shared', '-fPIC', '-o', library, join(workspacePath, 'library.c')];
    t.equal(spawnSync(compiler, args).status, 0);
    writeFileSync(join(workspacePath, '.env'), `export LD_AUDIT=${library} ODD='a"b$c'\n`);
    const { text } = await call(exec, { command: 'echo "$LD_AUDIT|$ODD|$(env | grep -c INNER)"' }, { workspacePath });
    t.equal(text.trim(), `${library}|a"b$c|0`, 'the command has it');
    t.equal(existsSync(proof), sandbox === 'off', `${sandbox}: a program outside of the sandbox has loaded it`);
  }
});
