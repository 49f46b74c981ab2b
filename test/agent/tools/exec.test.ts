import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { ToolContext } from '../../../src/agent/tool.ts';
import { CommandOutput } from '../../../src/agent/tools/exec/command-output.ts';
import { commandEnvironment } from '../../../src/agent/tools/exec/environment.ts';
import { createExec, type ExecSettings } from '../../../src/agent/tools/exec/exec.ts';
import { KeptOutput, readable } from '../../../src/agent/tools/exec/kept-output.ts';
import { PacedText } from '../../../src/agent/tools/exec/paced-text.ts';
import { runCommand } from '../../../src/agent/tools/exec/run-command.ts';
import { revealsSecret } from '../../../src/agent/tools/secrets.ts';
import { TextStreamRedactor } from '../../../src/lib/index.ts';
import { scanProcesses } from '../../../src/supervise/scan.ts';
import { anyCharacter } from '../../any-character.ts';
import { call, problemOf, temporaryWorkspace } from './run-tool.ts';

/** Names everything that this file starts in the process table. */
const incarnation = `test-exec-${process.pid}`;
const secret = 'sk-0123456789abcdef';

function settingsOf(overrides: Partial<ExecSettings> = {}): ExecSettings {
  return {
    timeoutMs: 60_000,
    maxTimeoutMs: 120_000,
    maxOutputChars: 4_000,
    sandbox: 'off',
    network: 'deny',
    home: '/nonexistent',
    pathRules: { blockedPaths: ['blocked'], protectedDirectories: [] },
    environment: { ...process.env, ORATORIO_INCARNATION: incarnation },
    passEnvironment: [],
    secrets: [secret],
    ...overrides,
  };
}

const exec = (overrides: Partial<ExecSettings> = {}) => createExec(settingsOf(overrides));

/** Processes of this file that are still alive. */
async function survivors(): Promise<number[]> {
  const all = await scanProcesses();
  return all
    .filter(({ zombie, marker }) => !zombie && typeof marker === 'object' && marker.value.startsWith(incarnation))
    .map(({ pid }) => pid);
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A zombie has ended: in a container it may stay uncollected.
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    // The parent has collected the process between the two checks.
    if (process.platform === 'linux' && !existsSync(`/proc/${pid}/stat`)) return false;
    throw error;
  }
};

/** Runs a command in a workspace of its own and makes sure that nothing of it is left. */
async function run(t: Test, args: Record<string, unknown>, context: Partial<ToolContext> = {}) {
  const workspacePath = context.workspacePath ?? temporaryWorkspace(t);
  const result = await call(exec(), args, { workspacePath, ...context });
  t.strictSame(await survivors(), [], 'nothing is left');
  return result;
}

t.test('returns the exit code and both outputs in the order of writing', async (t) => {
  const command = 'echo one; echo two >&2; echo three; echo four >&2; exit 3';
  const result = await run(t, { command });
  t.strictSame(result, { text: 'one\ntwo\nthree\nfour\n\nExit code 3.', isError: true, exitCode: 3 });
});

t.test('runs in the workspace, or in a directory of it', async (t) => {
  const workspacePath = temporaryWorkspace(t);
  mkdirSync(join(workspacePath, 'sub'));
  t.equal((await run(t, { command: 'pwd' }, { workspacePath })).text, workspacePath);
  t.equal((await run(t, { cmd: 'pwd', cwd: 'sub' }, { workspacePath })).text, join(workspacePath, 'sub'));
});

t.test('a command that says nothing says so', async (t) => {
  t.strictSame(await run(t, { command: 'true' }), { text: '(no output)', isError: false, exitCode: 0 });
});

t.test('is bash, takes any quoting, and has empty input', async (t) => {
  const command = `words=(a 'b "c"'); printf '<%s>' "\${words[@]}" "$(printf '$0')"; read -r line || printf ' end of input'`;
  t.equal((await run(t, { command })).text, '<a><b "c"><$0> end of input');
});

t.test('emits the output while the command runs', async (t) => {
  const workspacePath = temporaryWorkspace(t);
  const go = join(workspacePath, 'go');
  let live = '';
  const onOutput = (text: string): void => {
    live += text;
    // The command waits for this: if the output came at the end only, it would run into its timeout.
    if (live.includes('first')) writeFileSync(go, '');
  };
  const command = 'echo first; until [ -e go ]; do sleep 0.05; done; echo second';
  const result = await run(t, { command }, { workspacePath, onOutput });
  t.equal(live, 'first\nsecond\n');
  t.match(result.text, /^first\nsecond$/);
});

t.test('refuses a working directory that is outside, blocked, absent or a file', async (t) => {
  const workspacePath = temporaryWorkspace(t);
  for (const name of ['blocked', '.oratorio']) mkdirSync(join(workspacePath, name));
  writeFileSync(join(workspacePath, 'file'), '');
  symlinkSync('/etc', join(workspacePath, 'link'));
  const cases: [string, RegExp][] = [
    ['..', /^Error: refused: .*inside the workspace/],
    ['/etc', /^Error: refused: .*inside the workspace/],
    ['link', /^Error: refused: .*inside the workspace/],
    ['blocked', /^Error: refused: .*BlockedPaths/],
    ['.oratorio', /^Error: refused: .*own state/],
    ['absent', /^Error: .*ENOENT/],
    ['file', /^Error: .*not a directory/],
    ['a\0b', /^Error: .*NUL/],
  ];
  for (const [workingDir, expected] of cases) {
    const { text, isError } = await run(t, { command: 'touch proof', workingDir }, { workspacePath });
    t.match(text, expected, JSON.stringify(workingDir));
    t.equal(isError, true);
  }
});

t.test('checks its arguments', async (t) => {
  const tool = exec();
  t.match(problemOf(tool, {}), /command is missing/);
  t.match(problemOf(tool, { command: ' ' }), /command must be a shell command/);
  t.match(problemOf(tool, { command: 'a\0b' }), /without NUL/);
  t.match(problemOf(tool, { command: 'x'.repeat(131_072) }), /at most 131071 bytes/);
  t.match(problemOf(tool, { command: 'x', timeoutMs: 5 }), /timeoutMs must be at least 100/);
  t.strictSame(tool.parse({ command: 'x', timeoutMs: '900000' }), {
    ok: true,
    args: { command: 'x', workingDir: '.', timeoutMs: 120_000, background: false, outside: false, reason: '' },
  });
});

t.test('a command of the greatest length runs', async (t) => {
  const command = 'echo ok #'.padEnd(131_071, 'x');
  t.equal((await run(t, { command })).text, 'ok');
});

t.test('always needs approval, for the very command in the very directory', async (t) => {
  const tool = exec();
  const context = { workspacePath: '/ws' };
  const plain = tool.parse({ command: 'npm test' });
  const elsewhere = tool.parse({ command: 'npm test', workingDir: 'sub' });
  if (!plain.ok || !elsewhere.ok) throw new Error('not parsed');
  const need = { kind: 'shell', operation: 'run', target: 'npm test' };
  t.strictSame(await tool.approvalFor(plain.args, context), {
    ...need,
    workingDirectory: '/ws',
    scopeKey: 'exec:["/ws","npm test"]',
    covers: 'exactly this command in /ws',
  });
  t.match(await tool.approvalFor(elsewhere.args, context), {
    ...need,
    workingDirectory: '/ws/sub',
    scopeKey: 'exec:["/ws/sub","npm test"]',
  });
  t.equal(tool.isReadOnly, false);
});

t.test('a timeout ends the command with all it started, and says so', async (t) => {
  const { text, isError, exitCode } = await run(t, {
    command: 'echo begun; sleep 1000 | sleep 1000',
    // A busy machine takes its time to start bash.
    timeoutMs: 8_000,
  });
  t.match(
    text,
    /^begun\n\nThe command was ended because it took longer than 8000 ms\. timeoutMs can be at most 120000\.$/,
  );
  t.equal(isError, true);
  t.equal(exitCode, undefined);
});

t.test('one that ignores SIGTERM is killed; one that heeds it may tidy up', async (t) => {
  const stubborn = await run(t, { command: `trap '' TERM; sleep 1000 & sleep 1000; sleep 1000`, timeoutMs: 200 });
  t.match(stubborn.text, /ended because/);
  const tidy = await run(t, { command: `trap 'echo tidied; exit 0' TERM; sleep 1000 & wait`, timeoutMs: 8_000 });
  t.match(tidy.text, /^tidied\n/);
  t.equal(tidy.isError, true);
});

t.test('a stopped command is ended too', async (t) => {
  t.match((await run(t, { command: 'kill -STOP $$', timeoutMs: 200 })).text, /ended because/);
});

t.test('does not wait for background processes that hold its output, and ends them', async (t) => {
  const { text, isError } = await run(t, { command: 'sleep 1000 & echo started' });
  t.equal(text, 'started\n\nProcesses it left in the background were ended with it.');
  t.equal(isError, false);
});

t.test('finds who left the session', { skip: process.platform !== 'linux' && 'needs /proc' }, async (t) => {
  const workspacePath = temporaryWorkspace(t);
  const daemon = `setsid bash -c 'echo $$ > pid; exec >/dev/null 2>&1 </dev/null; sleep 1000 & sleep 1000' &`;
  const command = `( ${daemon} ) ; until [ -s pid ]; do sleep 0.02; done; echo away`;
  const { text } = await run(t, { command }, { workspacePath });
  t.match(text, /^away\n\nProcesses it left/);
  t.equal(isAlive(Number(readFileSync(join(workspacePath, 'pid'), 'utf8'))), false);
});

t.test('finds who cleared its environment but stayed in the group', async (t) => {
  const workspacePath = temporaryWorkspace(t);
  const { text } = await run(t, { command: `env -i sleep 1000 & echo $! > pid; echo x` }, { workspacePath });
  t.match(text, /^x/);
  const pid = Number(readFileSync(join(workspacePath, 'pid'), 'utf8'));
  // Only its group showed that it was ours: SIGKILL was sent, and takes effect later.
  while (isAlive(pid)) await sleep(5);
  t.pass('it has ended');
});

t.test('a storm of forks ends with the command', async (t) => {
  const command = 'for i in $(seq 40); do (setsid sleep 1000 &) ; sleep 1000 & done; echo done';
  t.match((await run(t, { command })).text, /^done\n\nProcesses it left/);
});

t.test('one that closes its output is still waited for', async (t) => {
  const workspacePath = temporaryWorkspace(t);
  const command = 'exec >&- 2>&-; sleep 0.3; echo here > file; exit 4';
  const { exitCode } = await run(t, { command }, { workspacePath });
  t.equal(exitCode, 4);
  t.equal(readFileSync(join(workspacePath, 'file'), 'utf8'), 'here\n');
});

t.test('who is about to end with the command may say its last words', async (t) => {
  let text = '';
  const end = await runCommand({
    argv: ['bash', '-c', `exec > >(sed 's/^/> /'); echo a; echo b`],
    cwd: temporaryWorkspace(t),
    env: { PATH: process.env['PATH'] ?? '' },
    marker: `${incarnation}/drain`,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    drainMs: 60_000,
    onText: (piece) => {
      text += piece;
    },
  });
  t.equal(text, '> a\n> b\n');
  t.match(end, { cause: 'exited', exitCode: 0 });
});

t.test('a flood stays within its limits, live and kept', async (t) => {
  let live = 0;
  const onOutput = (text: string): void => {
    live += text.length;
  };
  const { text } = await run(t, { command: 'yes abcdefgh | head -c 9000000' }, { onOutput });
  t.ok(text.length < 4_000 + 500);
  t.match(text, /8996000 of 9000000 characters are left out here\. Run it again with less output/);
  t.ok(live >= 200_000 && live < 200_200, String(live));
});

t.test('an output whose reading takes long is paused, so that other work has its turn', async (t) => {
  const pipe = new PassThrough();
  const turns: string[] = [];
  const slow = new PacedText((text) => {
    turns.push(text);
    const end = performance.now() + 15;
    while (performance.now() < end);
  });
  pipe.on('data', (chunk: Buffer) => slow.add(chunk, pipe));
  setImmediate(() => turns.push('other work'));
  for (const letter of ['a', 'b', 'c']) pipe.write(letter);
  pipe.end();
  await once(pipe, 'end');
  t.same(turns, ['a', 'other work', 'b', 'c']);
  const { text } = await run(t, { command: 'head -c 30000000 /dev/urandom; echo; echo end' });
  t.match(text, /\nend$/, 'positive control: the whole of a long output is read');
});

t.test('output of any bytes is read in linear time', async (t) => {
  const outputs: Readonly<Record<string, Buffer>> = {
    random: randomBytes(65_536),
    'beginnings of characters': Buffer.alloc(65_536, 0xe2),
    ...Object.fromEntries(
      ['\0', '\u001b', '\u001b]', '\u009b', '\b', 'ab\r', 'sk-012345'].map((each) => [
        JSON.stringify(each),
        Buffer.alloc(65_536, each),
      ]),
    ),
  };
  const pipe = new PassThrough();
  /** Processor time for reading an output, in microseconds. */
  const timeOf = (bytes: Buffer, count: number) => {
    const output = new CommandOutput({ secrets: [secret], maxOutputChars: 4_000, emit: () => {} });
    const text = new PacedText((piece) => output.push(piece));
    const { user } = process.cpuUsage();
    for (let n = 0; n < count; n += 1) text.add(bytes, pipe);
    text.end();
    output.close();
    t.ok(output.read().length > 0);
    return process.cpuUsage().user - user;
  };
  for (const [name, bytes] of Object.entries(outputs)) {
    timeOf(bytes, 4);
    // A quadratic search takes 64 times as long each time; one collection of garbage or one busy moment does not count.
    const ratios = [1, 2, 3].map(() => {
      const short = timeOf(bytes, 8);
      return timeOf(bytes, 64) / Math.max(short, 1_000);
    });
    t.ok(Math.min(...ratios) < 24, `${name}: ${ratios.map(Math.round)} times as long for eight times as much`);
  }
});

t.test('an endless flood ends at its timeout', async (t) => {
  t.match((await run(t, { command: 'yes', timeoutMs: 1_000 })).text, /took longer than 1000 ms/);
});

t.test('an interrupted turn ends the command and rejects', async (t) => {
  const workspacePath = temporaryWorkspace(t);
  const controller = new AbortController();
  const reason = new Error('interrupted');
  const running = call(
    exec(),
    { command: 'echo ready; setsid sleep 1000 & sleep 1000' },
    {
      workspacePath,
      signal: controller.signal,
      onOutput: () => controller.abort(reason),
    },
  );
  await t.rejects(running, reason);
  t.strictSame(await survivors(), []);
  const unborn = call(exec(), { command: 'touch proof' }, { workspacePath, signal: controller.signal });
  await t.rejects(unborn, reason);
  t.throws(() => readFileSync(join(workspacePath, 'proof')));
});

t.test('the result names the signal that ended a command', async (t) => {
  const { text, isError, exitCode } = await run(t, { command: 'echo x; kill -KILL $$' });
  t.equal(text, 'x\n\nThe command was ended by SIGKILL.');
  t.equal(isError, true);
  t.equal(exitCode, undefined);
});

t.test('a directory that cannot be entered is a failure of the command, not of ours', async (t) => {
  const workspacePath = temporaryWorkspace(t);
  mkdirSync(join(workspacePath, 'closed'));
  chmodSync(join(workspacePath, 'closed'), 0o000);
  const { text } = await run(t, { command: 'echo x', workingDir: 'closed' }, { workspacePath });
  // Root may enter.
  t.match(text, process.getuid?.() === 0 ? /^x$/ : /could not be started \(EACCES\)/);
});

t.test('bytes that are not text are marked, colours and progress bars are removed', async (t) => {
  const command = String.raw`printf 'a\xff\x00b\n\e[31mred\e[0m\n10%%\r20%%\rdone\r\nlast\r\n'`;
  t.equal((await run(t, { command })).text, 'a\uFFFD\uFFFDb\nred\ndone\nlast');
});

t.test('a character that arrives in pieces is one character', async (t) => {
  let live = '';
  const onOutput = (text: string): void => {
    live += text;
  };
  const command = String.raw`printf '\xe2\x82'; sleep 0.2; printf '\xac'`;
  t.equal((await run(t, { command }, { onOutput })).text, '€');
  t.equal(live, '€');
});

t.test('a command gets no secrets, no colours and no pager', async (t) => {
  const environment = {
    PATH: process.env['PATH'],
    HOME: '/home/somebody',
    OPENAI_API_KEY: 'passed on on purpose',
    MY_TOKEN: 'a token',
    GH_TOKEN: 'another',
    DB_PASSWORD: 'hunter2',
    LC_NOTE: `prefix ${secret} suffix`,
    XDG_SHORT: 'abc',
    ORATORIO_TOKEN: 'ours',
    ORATORIO_INCARNATION: incarnation,
    CI: 'true',
  };
  const tool = exec({ environment, passEnvironment: ['OPENAI_API_KEY', 'CI', 'LC_NOTE'], secrets: [secret, 'abc'] });
  const { text } = await call(tool, { command: 'env' }, { workspacePath: temporaryWorkspace(t) });
  const variables = new Map(text.split('\n').map((line) => line.split('=') as [string, string]));
  for (const name of ['MY_TOKEN', 'GH_TOKEN', 'DB_PASSWORD', 'LC_NOTE', 'XDG_SHORT', 'ORATORIO_TOKEN']) {
    t.notOk(variables.has(name), name);
  }
  t.equal(variables.get('OPENAI_API_KEY'), 'passed on on purpose');
  t.equal(variables.get('CI'), 'true');
  t.equal(variables.get('TERM'), 'dumb');
  t.equal(variables.get('GIT_PAGER'), 'cat');
  t.equal(variables.get('GIT_TERMINAL_PROMPT'), '0');
  t.match(variables.get('ORATORIO_INCARNATION'), new RegExp(`^${incarnation}/[0-9a-f-]{36}$`));
});

t.test('names that sound like secrets stay out, others do not', async (t) => {
  const names = [
    'A_API_KEY',
    'APIKEY',
    'X_ACCESS_KEY_ID',
    'NPM_TOKEN',
    'CLIENT_SECRET',
    'PGPASSWORD',
    'AWS_SECRET_ACCESS_KEY',
    'TOKEN',
  ];
  const source = Object.fromEntries(names.map((name) => [`LC_${name}`, 'value']));
  const settings = { environment: { ...source, LC_KEYBOARD: 'de', LC_ALL: 'C' }, passEnvironment: [], secrets: [] };
  t.match(
    Object.keys(commandEnvironment(settings, 'm')).filter((name) => name.startsWith('LC_')),
    ['LC_KEYBOARD', 'LC_ALL'],
  );
  t.equal(Object.keys(commandEnvironment(settings, 'm')).filter((name) => name.startsWith('LC_')).length, 2);
});

t.test('a secret of the configuration is masked in the output of a command, also when printed in pieces', async (t) => {
  let live = '';
  const onOutput = (text: string): void => {
    live += text;
  };
  const command = `printf '%s' '${secret.slice(0, 9)}'; sleep 0.2; printf '%s\\n' '${secret.slice(9)}'; echo sk-0`;
  const { text } = await run(t, { command }, { onOutput });
  t.equal(text, '[redacted]\nsk-0');
  t.equal(live, '[redacted]\nsk-0\n');
});

t.test('masking loses nothing else, however the text is cut (property)', async () => {
  const piece = fc.oneof(fc.constantFrom('sk-012345', '6789abcdef', 'sk-', secret, '\n'), fc.string({ maxLength: 12 }));
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const masked = new TextStreamRedactor([secret]);
      const shown = pieces.map((text) => masked.push(text)).join('') + masked.end();
      const expected = pieces.join('').replaceAll(secret, '[redacted]');
      // Most of a secret is replaced at the end, too.
      const isCut =
        shown.endsWith('[redacted]') && secret.startsWith(expected.slice(shown.length - '[redacted]'.length));
      return (shown === expected || isCut) && !shown.includes(secret);
    }),
  );
});

t.test('output up to the limit is retained whole, a longer one with both ends (property)', async () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z\n]{0,40}$/)), fc.integer({ min: 2, max: 200 }), (pieces, max) => {
      const kept = new KeptOutput(max);
      for (const piece of pieces) kept.push(piece);
      const all = pieces.join('');
      const half = Math.floor(max / 2);
      const shown = kept.read();
      return all.length <= max
        ? shown === all
        : shown.startsWith(all.slice(0, half)) &&
            shown.endsWith(all.slice(all.length - (max - half))) &&
            shown.includes(`${all.length - max} of ${all.length} characters`);
    }),
  );
});

t.test('readable text is well-formed and has no control characters (property)', async () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      const shown = readable(text);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
      return shown.isWellFormed() && !/[\0-\x08\x0b-\x1f\x7f]/.test(shown);
    }),
  );
});

t.test('a secret is found in plain and in URL spelling; short ones are words', async (t) => {
  t.equal(revealsSecret('https://x/?q=a%20long%20secret', ['a long secret']), true);
  t.equal(revealsSecret('a long secret', ['a long secret']), true);
  t.equal(revealsSecret('100% of abc', ['abc', '']), false);
});
