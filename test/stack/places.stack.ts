/** Agent servers in containers of a real engine: turns, outside kills, lost engines, and errors for missing parts. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { AppServerClient, undoTurns } from '../../src/client/index.ts';
import { eventually, makeWorkspace, startTestHub, temporaryDirectory } from '../hub/harness.ts';
import { signalEngine } from './engine.ts';
import {
  agentServer,
  canPause,
  containers,
  docker,
  engineDirectory,
  engineSocket,
  homeOf,
  hubOf,
  isRootless,
  output,
  place,
  settled,
  turn,
} from './places-scene.ts';
import { images } from './variables.ts';

const engine = engineSocket();

t.test(
  'a turn in a container edits files of the user, and cannot access the Hub, the home, the engine or a network',
  async (t) => {
    const home = homeOf(t);
    const hub = await hubOf(t, home);
    const workspace = makeWorkspace(t, {}, 'a name, with a comma');
    execFileSync('git', ['init', '-q'], { cwd: workspace });
    const record = await hub.ensure(workspace, { place });
    t.match(record, { state: 'running', place: { kind: 'container', engine, image: images.base, state: 'ready' } });
    await turn(record, 'write hello.sh: echo hi then run: sh hello.sh');
    t.equal(statSync(join(workspace, 'hello.sh')).uid, process.getuid?.());
    const seen = output(
      await turn(
        record,
        `run: id -u; cat ${home}/hub/hub.lock ${home}/config.json; ls ${engine}; echo evil > .git/hooks/pre-commit; mv .git away; touch /outside; cat /proc/net/dev; grep CapEff /proc/self/status; ls ${home}/workspaces`,
      ),
    );
    t.match(seen, /CapEff:\s+0{16}/);
    t.match(seen, /hub\.lock: No such file/);
    t.match(seen, /config\.json: No such file/);
    t.notOk(existsSync(join(workspace, '.git/hooks/pre-commit')));
    t.ok(existsSync(join(workspace, '.git/HEAD')));
    t.notMatch(seen, /eth0/);
    const now = await settled(hub, workspace, ({ lastTurn, sandbox }) => lastTurn !== null && sandbox !== null);
    t.match(now, { health: 'healthy', sandbox: { state: 'on' } });
    const [id = ''] = await containers();
    const details = await docker('inspect', id);
    for (const secret of [
      hub.lock.token,
      new URL(record.endpoints['appServerWebSocket'] ?? '').searchParams.get('token') ?? '-',
    ])
      t.notMatch(details, secret, 'the engine shows no secret');
    await hub.shutdown();
    t.same(await containers(), [], 'a stop of the Hub leaves no container');
  },
);

t.test('the next Hub adopts the container of a killed Hub', async (t) => {
  const home = homeOf(t);
  const workspace = makeWorkspace(t);
  const first = await hubOf(t, home);
  const { pid } = await first.ensure(workspace, { place });
  const before = await containers();
  await first.kill('SIGKILL');
  const next = await hubOf(t, home);
  const record = await settled(next, workspace, ({ state }) => state === 'running');
  t.match(record, { pid, adopted: true, place: { state: 'ready' } });
  t.same(await containers(), before);
  t.match(output(await turn(record, 'run: echo again')), /again/);
  await next.shutdown();
  t.same(await containers(), []);
});

t.test(
  'a container that is killed, removed or paused from outside is replaced or reported, and never runs twice',
  async (t) => {
    const hub = await hubOf(t, homeOf(t));
    const workspace = makeWorkspace(t, {
      Supervision: { BackoffBaseMs: 20, ProbeIntervalMs: 500, ProbeTimeoutMs: 500 },
    });
    let { incarnation } = await hub.ensure(workspace, { place });
    for (const words of [['kill'], ['rm', '--force']]) {
      const [id = ''] = await containers();
      await docker(...words, id);
      const record = await settled(hub, workspace, (now) => now.incarnation > incarnation && now.state === 'running');
      incarnation = record.incarnation;
      t.equal((await containers()).length, 1, words.join(' '));
    }
    if (canPause()) {
      const [id = ''] = await containers();
      await docker('pause', id);
      await settled(hub, workspace, ({ state }) => state === 'unhealthy');
      await docker('unpause', id);
      t.match(await settled(hub, workspace, ({ state }) => state === 'running'), { incarnation });
    }
    await hub.shutdown();
    t.same(await containers(), []);
  },
);

t.test('an engine that stops answering is reported; states stay, and nothing is restarted', async (t) => {
  const hub = await hubOf(t, homeOf(t));
  const workspace = makeWorkspace(t);
  const { pid, incarnation } = await hub.ensure(workspace, { place });
  const events = await hub.events();
  const signal = (name: NodeJS.Signals) => signalEngine(engineDirectory(), name);
  t.teardown(() => signal('SIGCONT'));
  signal('SIGSTOP');
  await events.wait('place.lost');
  const lost = await hub.record(workspace);
  t.match(lost, { state: 'running', pid, incarnation, place: { state: 'lost' } });
  t.match(output(await turn(lost, 'run: echo without engine')), /without engine/);
  signal('SIGCONT');
  await events.wait('place.back');
  t.match(await hub.record(workspace), { state: 'running', pid, incarnation, place: { state: 'ready' } });
  await hub.shutdown();
  t.same(await containers(), []);
});

t.test('undo, a worktree and an answered question work in a container', async (t) => {
  const hub = await hubOf(t, homeOf(t));
  const workspace = makeWorkspace(t);
  const git = (...words: string[]) => execFileSync('git', ['-C', workspace, ...words], { stdio: 'pipe' });
  git('init', '-q');
  git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '--allow-empty', '-m', 'one');
  const worktree = join(temporaryDirectory(t, 'oratorio-wt-'), 'feature');
  git('worktree', 'add', '-q', worktree);
  mkdirSync(join(worktree, '.oratorio'));
  writeFileSync(join(worktree, '.oratorio', 'config.json'), '{}');
  const record = await hub.ensure(worktree, { place });
  const log = 'git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two && git log --oneline | wc -l';
  t.match(output(await turn(record, `run: ${log}`)), /2/, 'commits in the common git directory');
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
  t.teardown(() => client.close());
  const { thread } = (await client.request('thread/start', {})) as { thread: { id: string } };
  const input = [{ type: 'text', text: 'write "hello" to greeting.txt' }];
  await client.request('turn/start', { threadId: thread.id, input });
  const [asked] = await eventually(async () => {
    const { body } = await hub.call('GET', '/v1/inbox');
    return body.length > 0 && body;
  }, 'the question is in the inbox');
  const answered = await hub.call('POST', `/v1/inbox/${asked.workspaceId}/${asked.request.requestId}`, {
    decision: 'accept',
  });
  t.equal(answered.status, 200);
  await eventually(() => existsSync(join(worktree, 'greeting.txt')), 'the file is written');
  await settled(hub, worktree, ({ lastTurn, pendingApprovals }) => lastTurn !== null && pendingApprovals === 0);
  await eventually(async () => {
    const undone = await undoTurns(client, thread.id).catch(() => undefined);
    return undone !== undefined;
  }, 'the turn is undone');
  t.notOk(existsSync(join(worktree, 'greeting.txt')));
  await hub.shutdown();
});

t.test(
  'a missing image, an unreachable engine and a Hub that runs as root are each refused with a specific error',
  async (t) => {
    const workspace = makeWorkspace(t);
    const cases = [
      { container: { Image: 'not-there:1' }, code: 'imageMissing', words: /not-there:1.*never pulls/ },
      {
        container: { Engine: '/missing/engine.sock' },
        code: 'placeUnavailable',
        words: /missing\/engine\.sock.*socket does not exist/,
      },
      ...(isRootless() ? [] : [{ container: { AllowRoot: false }, code: 'placeRefused', words: /AllowRoot/ }]),
      { container: { Mounts: ['/'] }, code: 'placeRefused', words: /Mounts/ },
    ];
    for (const { container, code, words } of cases) {
      const hub = await startTestHub(t, { home: homeOf(t, container), agentServer, policy: { maxRestarts: 0 } });
      const { body } = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace, place });
      t.match(body, { error: { code, message: words } });
      const { body: places } = await hub.call('GET', '/v1/places');
      t.match(places, [{ kind: 'local', problem: null }, { kind: 'container' }]);
      await hub.shutdown();
    }
    t.same(await containers(), []);
  },
);

t.test('mounts, image, privileges and network that a clone requests are ignored and reported', async (t) => {
  const hub = await startTestHub(t, { home: homeOf(t), agentServer, trustsWorkspaces: false });
  const workspace = join(temporaryDirectory(t, 'oratorio-clone-'), 'clone');
  mkdirSync(join(workspace, '.oratorio'), { recursive: true });
  const Container = { Image: 'evil', Mounts: ['/etc'], Network: 'bridge', AllowRoot: true, Engine: '/evil.sock' };
  const settings = { Place: { Default: 'local', Container } };
  writeFileSync(join(workspace, '.oratorio', 'config.json'), JSON.stringify(settings));
  writeFileSync(join(workspace, '.devcontainer.json'), '{"image": "evil", "runArgs": ["--privileged"]}');
  const record = await hub.ensure(workspace, { place });
  t.match(record, { state: 'running', place: { engine, image: images.base } });
  t.match(record.restrictedSettings.join(), /Place/);
  const [id = ''] = await containers();
  const [details] = JSON.parse(await docker('inspect', id));
  t.match(details.HostConfig, { NetworkMode: 'none', Privileged: false });
  t.match(readFileSync(`/proc/${record.pid}/status`, 'utf8'), /^CapEff:\s+0{16}$/m);
  t.notMatch(JSON.stringify(details.Mounts), '"/etc"');
  await hub.shutdown();
});
