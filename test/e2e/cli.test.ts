/** The built and installed command line tool, from `up` to `hub stop`: a real Hub and a real agent server. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { readIdentity } from '../../src/supervise/index.ts';
import { eventually, readHubLock } from '../hub/harness.ts';
import { programEnvironment } from '../programs.ts';

const command = fileURLToPath(new URL('../../bin/oratorio.js', import.meta.url));
const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-e2e-')));
const workspace = join(home, 'site');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** @param onStdout sees everything written so far; returns true to press Ctrl-C */
function oratorio(
  argv: readonly string[],
  { input = '', onStdout = (_: string): boolean => false } = {},
): Promise<Ended> {
  return run(spawnIn(home, process.execPath, [command, ...argv]), input, onStdout);
}

const spawnIn = (cwd: string, program: string, args: readonly string[], variables: Record<string, string> = {}) =>
  spawn(program, args, {
    cwd,
    env: { ...programEnvironment, HOME: home, ORATORIO_HOME: join(home, 'state'), ...variables },
  });

/** Runs a program in a directory. */
const runIn = (...given: Parameters<typeof spawnIn>): Promise<Ended> => run(spawnIn(...given));

function run(child: ReturnType<typeof spawnIn>, input = '', onStdout = (_: string): boolean => false): Promise<Ended> {
  return new Promise((resolve) => {
    let [stdout, stderr] = ['', ''];
    let isPressed = false;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      // Pressed again it would end the process at once.
      if (isPressed || !onStdout(stdout)) return;
      isPressed = true;
      child.kill('SIGINT');
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.once('close', (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input);
  });
}

async function untilGone(pid: number): Promise<void> {
  const deadline = performance.now() + 180_000;
  while (readIdentity(pid) !== 'gone') {
    if (performance.now() > deadline) throw new Error(`process ${pid} lives`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

t.teardown(async () => {
  await oratorio(['hub', 'stop']);
  rmSync(home, { recursive: true, force: true });
});

t.test('up, chat, exec, restart, stop and hub stop run a workspace from its creation to the end', async (t) => {
  const up = await oratorio(['up', workspace, '--init', '--follow'], {
    onStdout: (text) => text.includes('Following events'),
  });
  t.match(up, { code: 0, stderr: '' });
  t.match(
    up.stdout,
    /Made .* a workspace[\s\S]*Hub started[\s\S]*appserver.starting[\s\S]*appserver.running[\s\S]*state +ready[\s\S]*model +demo \(offline\)/,
  );
  t.match(up.stdout, /statecharts +http:\/\/127.0.0.1:\d+\/[\s\S]*Left running/);
  t.notMatch(up.stdout, /token=/);

  const status = JSON.parse((await oratorio(['hub', 'status', '--json'])).stdout);
  const [record] = JSON.parse((await oratorio(['list', '--json'])).stdout);
  t.match(record, { canonicalWorkspacePath: workspace, state: 'running', startedByHub: true });

  let pieces = 0;
  const chat = await oratorio(['chat', 'count to 100', '--workspace', 'site'], {
    onStdout: () => {
      pieces += 1;
      return false;
    },
  });
  t.match(chat, { code: 0, stdout: /Demo model[\s\S]*100/ });
  t.ok(pieces > 1, 'the answer came in pieces');
  const piped = await oratorio(['exec', '--json', '--workspace', workspace], { input: 'hello\n' });
  t.match(JSON.parse(piped.stdout), { threadId: /^thread_/, text: /Demo model/, tokenUsage: { totalTokens: Number } });

  t.match(await oratorio(['logs', workspace]), { code: 0, stdout: /serving/ });
  const events = await oratorio(['events', '--json', '--since', 'another-0'], {
    onStdout: (text) => text.includes('appserver.running'),
  });
  t.equal(events.code, 0);
  // The server reports its health by itself, before or after the Hub has found it running.
  const others = ['port.allocated', 'notification.requested', 'appserver.health'];
  t.strictSame(
    events.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).kind)
      .filter((kind) => !others.includes(kind))
      .slice(0, 4),
    ['hub.gap', 'hub.started', 'appserver.starting', 'appserver.running'],
  );

  const restarted = JSON.parse((await oratorio(['restart', workspace, '--json'])).stdout);
  t.match(restarted, { state: 'running' });
  t.not(restarted.pid, record.pid);
  t.match(JSON.parse((await oratorio(['stop', workspace, '--json'])).stdout), { state: 'stopped', pid: null });
  await untilGone(restarted.pid);
  t.match(await oratorio(['hub', 'stop']), { code: 0, stdout: /has stopped/ });
  await untilGone(status.pid);
  t.notOk(existsSync(join(home, 'state', 'hub', 'hub.lock')));
});

t.test('chat starts the Hub unless --no-start is given', async (t) => {
  t.match(await oratorio(['chat', 'hello', '--workspace', workspace, '--no-start']), { code: 3 });
  t.match(await oratorio(['chat', 'hello', '--workspace', workspace]), { code: 0, stdout: /Demo model/ });
});

t.test('hub stop --detach leaves the agent server to the next Hub', async (t) => {
  const [before] = JSON.parse((await oratorio(['list', '--json'])).stdout);
  t.match(await oratorio(['hub', 'stop', '--detach']), { code: 0, stdout: /live on/ });
  // The next Hub answers before it has adopted the server; `up` waits for that.
  t.match(await oratorio(['up', workspace, '--json']), { code: 0 });
  const [after] = JSON.parse((await oratorio(['list', '--json'])).stdout);
  t.match(after, { state: 'running', pid: before.pid, adopted: true, startedByHub: true });
});

t.test(
  'a command in a deleted directory works without one, and otherwise reports that the directory is gone',
  async (t) => {
    const inDeleted = async (...argv: string[]) => {
      const deleted = mkdtempSync(join(home, 'deleted-'));
      const script = 'rmdir "$1" && shift && exec "$@"';
      return runIn(deleted, 'sh', ['-c', script, 'sh', deleted, process.execPath, command, ...argv]);
    };
    for (const argv of [['version'], ['list'], ['hub', 'status'], ['exec', 'hello', '--workspace', workspace]])
      t.match(await inDeleted(...argv), { code: 0, stderr: /^(?![\s\S]*uv_cwd)/ }, argv.join(' '));
    t.notMatch((await inDeleted('doctor', '--offline')).stderr, 'uv_cwd');
    for (const argv of [['exec', 'hello'], ['up'], ['init'], ['diff'], ['exec', 'hello', '--workspace', 'site']]) {
      const { code, stderr } = await inDeleted(...argv);
      t.equal(code, 4, argv.join(' '));
      t.match(stderr, 'The current directory does not exist any more.');
      t.notMatch(stderr, /^\s+at /m);
    }
  },
);

t.test('a server ends when the launcher that started it under another Node is killed', async (t) => {
  const state = mkdtempSync(join(home, 'launched-'));
  const otherNode = join(state, 'other-node.cjs');
  writeFileSync(otherNode, "Object.defineProperty(process.versions, 'node', { value: '20.0.0' });");
  const launcher = spawn(process.execPath, ['-r', otherNode, command, 'hub'], {
    ...{ cwd: home, env: { ...programEnvironment, HOME: home, ORATORIO_HOME: state }, stdio: 'ignore' },
  });
  const { pid } = await eventually(() => readHubLock(state), 'the Hub publishes its address');
  t.not(pid, launcher.pid, 'the Hub is a child of the launcher');
  launcher.kill('SIGKILL');
  await untilGone(pid);
  t.notOk(existsSync(join(state, 'hub', 'hub.lock')), 'it has ended in order');
});

t.test('exec and chat in a directory that is not a workspace start no Hub', async (t) => {
  const state = mkdtempSync(join(home, 'unused-'));
  const elsewhere = mkdtempSync(join(home, 'elsewhere-'));
  for (const argv of [['exec', 'hello'], ['chat', 'hello'], ['diff'], ['undo'], ['cron', 'list']]) {
    const { code, stderr } = await runIn(elsewhere, process.execPath, [command, ...argv], { ORATORIO_HOME: state });
    t.equal(code, 4, argv.join(' '));
    t.match(stderr, 'is not a workspace');
  }
  t.notOk(existsSync(join(state, 'hub')));
});

t.test(
  'exec reports the thread, the turn and the next commands when its turn ends with the agent server',
  async (t) => {
    const file = join(workspace, '.oratorio', 'config.json');
    const settings = readFileSync(file, 'utf8');
    t.teardown(() => writeFileSync(file, settings));
    writeFileSync(file, JSON.stringify({ ...JSON.parse(settings), Turns: { Resume: 'never' } }));
    await oratorio(['restart', workspace]);
    const [record] = JSON.parse((await oratorio(['list', '--json'])).stdout);
    const cut = runIn(workspace, process.execPath, [command, 'exec', '--json', '--yes', 'run: touch begun; sleep 300']);
    await eventually(() => existsSync(join(workspace, 'begun')), 'the command runs');
    process.kill(record.pid, 'SIGKILL');
    const { code, stdout, stderr } = await cut;
    t.equal(code, 1);
    t.match(JSON.parse(stdout), { error: { details: { threadId: /^thread_/, turnId: /^turn_/, state: 'cut' } } });
    t.match(stderr, /cut off[\s\S]*oratorio chat --thread thread_\S+; [\s\S]*oratorio undo --thread thread_/);
  },
);

t.test('a second Hub reports the first one and exits with 0', async (t) => {
  t.match(await oratorio(['hub']), { code: 0, stdout: /Another Hub serves this user at http/ });
});

t.test('app-server exits with 4 without a workspace and with 5 beside another agent server', async (t) => {
  t.match(await oratorio(['app-server', '--workspace', join(home, 'nowhere')]), { code: 4 });
  // The Hub may be about to restart the server that the last test but one has killed.
  t.match(await oratorio(['ensure', workspace]), { code: 0 });
  t.match(await oratorio(['app-server', '--workspace', workspace]), { code: 5, stderr: /another agent server/i });
});

t.test(
  'a command for a moved workspace names its new place, and stop removes the old path from the list',
  async (t) => {
    const [before, after] = [join(home, 'before'), join(home, 'after')];
    t.match(await oratorio(['up', before, '--init', '--no-follow']), { code: 0 });
    renameSync(before, after);
    for (const argv of [['chat', 'hello'], ['exec', 'hello'], ['undo']]) {
      const { code, stderr } = await oratorio([...argv, '--workspace', before]);
      t.equal(code, 4, argv.join(' '));
      t.match(stderr, `${before} does not exist: it was moved or deleted, probably to ${after}.`);
      t.match(
        stderr,
        `Use it there: oratorio up ${after}. To remove the old path from the list: oratorio stop ${before}`,
      );
      t.notMatch(stderr, 'oratorio init');
    }
    t.match(await oratorio(['chat', 'hello', '--workspace', join(home, 'never')]), {
      code: 4,
      stderr: /Correct the path, or make it a workspace: oratorio init .*never/,
    });
    t.match(await oratorio(['stop', before]), {
      code: 0,
      stderr: `${before} does not exist, and is removed from the list.`,
    });
    t.notMatch((await oratorio(['list'])).stdout, 'before');
    const { stdout } = await oratorio(['stop', workspace]);
    t.match(stdout, 'stopped', 'control: a workspace that is there stays');
    t.match((await oratorio(['list'])).stdout, 'site');
  },
);
