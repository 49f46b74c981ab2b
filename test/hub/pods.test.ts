/** Agent servers in pods of a stand-in cluster, whose pods are real processes with namespaces of their own. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { workspaceKey } from '../../src/config/index.ts';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { logFiles } from '../../src/supervise/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import { fakeCluster, token } from '../places/fake-cluster.ts';
import { program } from '../programs.ts';
import { eventually, makeWorkspace, startTestHub, type TestHub, temporaryDirectory } from './harness.ts';

interface Item {
  readonly type: string;
  readonly text?: string;
}

/** Runs one turn of the demo model to its end. */
async function turn(record: AppServerRecord, text: string): Promise<string> {
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
  try {
    const config = { approvalPolicy: 'autoApprove' };
    const { thread } = (await client.request('thread/start', { config })) as { thread: { id: string } };
    await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text }] });
    return await eventually(async () => {
      const read = await client.request('thread/read', { threadId: thread.id, includeTurns: true });
      const { turns } = (read as { thread: { turns: { completedAt?: string; items: Item[] }[] } }).thread;
      if (turns[0]?.completedAt === undefined) return undefined;
      return turns[0].items.flatMap((item) => (item.type === 'toolResult' ? (item.text ?? '') : [])).join('\n');
    }, 'the turn ends');
  } finally {
    client.close();
  }
}

const settled = (hub: TestHub, workspace: string, wanted: (record: AppServerRecord) => boolean) =>
  eventually(
    async () => {
      const record = await hub.record(workspace);
      return wanted(record) ? record : undefined;
    },
    () => `the record changes; the Hub said ${hub.output().slice(-3_000)}`,
  );

async function scene(t: Test) {
  const cluster = await fakeCluster(t);
  const home = temporaryDirectory(t, 'oratorio-home-');
  const workspace = makeWorkspace(t, { Supervision: { BackoffBaseMs: 20 } });
  const Pod = {
    ...{ Kubeconfig: cluster.kubeconfig, AllowRoot: true },
    Command: [process.execPath, '--disable-warning=ExperimentalWarning', program('src/appserver/main.ts')],
    Volumes: [workspace, home].map((path) => `${path}=hostPath:${path}`),
  };
  writeFileSync(join(home, 'config.json'), JSON.stringify({ Place: { Pod } }), { mode: 0o600 });
  return { cluster, home, workspace };
}

const place = { kind: 'pod' } as const;

t.test('a turn runs in a pod, which is adopted, reported as lost, replaced and removed', async (t) => {
  const { cluster, home, workspace } = await scene(t);
  const names = () => [...cluster.pods.keys()];
  const first = await startTestHub(t, { home });
  const record = await first.ensure(workspace, { place });
  t.match(record, { state: 'running', pid: null, place: { kind: 'pod', engine: cluster.server, state: 'ready' } });
  const said = `run: echo hi > made; cat ${home}/hub/hub.lock ${home}/config.json; cat /proc/net/dev; echo ready`;
  const seen = await turn(record, said);
  t.match(seen, /ready/);
  t.match(seen, /hub\.lock: No such file/);
  t.match(seen, /config\.json: No such file/);
  t.equal(statSync(join(workspace, 'made')).uid, process.getuid?.());
  t.same(cluster.faults, [], 'each request body has the published types');
  const sent = cluster.bodies.join('\n');
  for (const secret of [
    token,
    first.lock.token,
    new URL(record.endpoints['appServerWebSocket'] ?? '').searchParams.get('token') ?? '-',
  ])
    t.notMatch(sent, secret, 'the cluster stores no secret');
  t.match(await runInProcess(home, 'place', workspace), {
    code: 0,
    stdout: /runs in the place pod[\s\S]*kubernetes v1\.30\.4/,
  });

  const before = names();
  await first.kill('SIGKILL');
  const next = await startTestHub(t, { home });
  t.match(await settled(next, workspace, ({ state }) => state === 'running'), {
    adopted: true,
    place: { state: 'ready' },
  });
  t.same(names(), before, 'the next Hub adopts the same pod');
  t.match(await turn(await next.record(workspace), 'run: echo again'), /again/);

  cluster.intercept = (_, response) => response.destroy() !== undefined;
  t.match(await settled(next, workspace, ({ place: now }) => now?.state === 'lost'), { state: 'running' });
  cluster.intercept = () => false;
  t.match(await settled(next, workspace, ({ place: now }) => now?.state === 'ready'), { state: 'running' });
  t.same(names(), before, 'a silent cluster causes no second start');

  const { incarnation } = await next.record(workspace);
  const [name = ''] = before;
  const pod = cluster.pods.get(name);
  if (pod) pod.object.reasonOfEnd = 'OOMKilled';
  cluster.kill(name);
  await settled(next, workspace, (now) => now.incarnation > incarnation && now.state === 'running');
  t.equal(names().length, 1, 'the ended pod is removed');
  const { stderr } = logFiles(join(home, 'hub/logs', workspaceKey(workspace)));
  t.match(readFileSync(stderr, 'utf8'), /the cluster ended the pod: OOMKilled/);
  await next.shutdown();
  t.same(names(), [], 'a stop of the Hub leaves no pod');
  t.same([...cluster.leases.keys()], [], 'and no lease');
  t.same(cluster.faults, []);
});

t.test(
  'regression: questions about the places run the credential program once, until the kubeconfig file changes',
  async (t) => {
    const { cluster, home, workspace } = await scene(t);
    const login = join(home, 'login');
    writeFileSync(login, `#!/bin/sh\necho x >> ${home}/runs\necho '{"status":{"token":"${token}"}}'\n`, {
      mode: 0o755,
    });
    const exec = `exec: { apiVersion: client.authentication.k8s.io/v1, command: ${login} }`;
    const Kubeconfig = cluster.configWith((text) => text.replace(`token: ${token}`, exec));
    const Volumes = [workspace, home].map((path) => `${path}=hostPath:${path}`);
    const Pod = { Kubeconfig, AllowRoot: true, Volumes };
    writeFileSync(join(home, 'config.json'), JSON.stringify({ Place: { Pod } }), { mode: 0o600 });
    const hub = await startTestHub(t, { home });
    const runs = () => readFileSync(join(home, 'runs'), 'utf8');
    for (let count = 0; count < 3; count += 1) {
      const { body } = await hub.call('GET', '/v1/places');
      t.match(body[2], { kind: 'pod', version: 'kubernetes v1.30.4', problem: null });
    }
    t.equal(runs(), 'x\n');
    writeFileSync(Kubeconfig, `${readFileSync(Kubeconfig, 'utf8')}\n`);
    await hub.call('GET', '/v1/places');
    t.equal(runs(), 'x\nx\n');
    await hub.shutdown();
  },
);
