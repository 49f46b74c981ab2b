/** Clusters that refuse, hang, answer wrongly or lose a pod: the state of the pod stays right, and each start ends with its reason. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { PodPlace, type PodSettings } from '../../src/places/index.ts';
import { podSpec } from '../../src/places/pod-spec.ts';
import { logFiles } from '../../src/supervise/index.ts';
import { eventually, temporaryDirectory } from '../hub/harness.ts';
import { fakeCluster, token } from './fake-cluster.ts';

const marker = '0d6c2f0e-0000-4000-8000-000000000001';
const name = `oratorio-${marker}`;
const waiting = (reason: string) => ({
  phase: 'Pending',
  containerStatuses: [{ name: 'agent-server', state: { waiting: { reason, message: 'words of the cluster' } } }],
});
const running = { phase: 'Running', containerStatuses: [{ name: 'agent-server', state: { running: {} } }] };

/** A cluster whose pods have the status of the test, and a place in it. */
async function scene(t: Test) {
  const cluster = await fakeCluster(t);
  cluster.statusOfNew = () => structuredClone(running);
  const home = temporaryDirectory(t, 'oratorio-home-');
  const [workspacePath, logDirectory] = [join(home, 'site'), join(home, 'hub/logs')];
  for (const path of [workspacePath, logDirectory]) mkdirSync(path, { recursive: true });
  const settings: PodSettings = {
    ...{ kind: 'pod', kubeconfig: cluster.kubeconfig, context: '', namespace: '', engine: cluster.server },
    ...{ image: 'oratorio:dev', command: ['node', 'main.cjs'], volumes: [`${home}=hostPath:${home}`] },
    ...{ memoryMiB: 512, cpus: 1.5, pullImages: false, allowRoot: true },
  };
  const request = {
    ...{
      home,
      workspacePath,
      logDirectory,
      settings,
      marker,
      workspaceKey: 'key',
      skeleton: join(home, 'hub/places/x'),
    },
    ...{ environment: {}, stdin: 'document\n', ports: [] },
  };
  const place = (kubeconfig = cluster.kubeconfig, answerMs = 60_000, renewalMs = 60_000) =>
    new PodPlace({ ...settings, kubeconfig }, 'home', { answerMs, env: {}, renewalMs });
  const start = async (answerMs?: number) => {
    const child = await place(undefined, answerMs).start(request);
    t.teardown(() => child.detach());
    return child;
  };
  return { cluster, home, settings, request, place, start };
}

const answer =
  (status: number, body: string, headers: Record<string, string> = {}) =>
  (response: ServerResponse) => {
    response.writeHead(status, headers).end(body);
  };
const status = (message: string) => JSON.stringify({ kind: 'Status', message });

t.test('a start that the cluster refuses ends with the reason, and leaves no pod and no lease', async (t) => {
  const { cluster, start } = await scene(t);
  const create = 'POST /api/v1/namespaces/work/pods';
  const refusals: [string, (response: ServerResponse) => void, RegExp][] = [
    ['401', answer(401, status('Unauthorized')), /does not accept the credentials: Unauthorized\. Log in again/],
    ['403', answer(403, status('pods is forbidden')), /denies a request: pods is forbidden\. Oratorio needs pods/],
    ['404', answer(404, status('no namespace')), /refuses the request: no namespace/],
    ['409', answer(409, status('already exists')), /refuses the request: already exists/],
    ['422', answer(422, status('spec is invalid')), /does not accept the pod: spec is invalid/],
    ['429 without a time', answer(429, status('slow down')), /refuses the request: slow down/],
    ['500', answer(500, ''), /refuses the request: HTTP 500/],
    ['garbage', answer(201, '<html>'), /invalid answer to POST/],
    ['drop', (response) => void response.destroy(), /does not answer: .*Check the cluster, then try again/],
    ['hang', () => {}, /does not answer: .*Check the cluster, then try again/],
  ];
  for (const [title, refuse, words] of refusals) {
    cluster.intercept = (request, response) => {
      if (request === create) refuse(response);
      return request === create;
    };
    // Only a request that hangs reaches this limit.
    await t.rejects(start(title === 'hang' ? 4_000 : undefined), { name: 'PlaceError', message: words }, title);
    t.same([...cluster.pods.keys(), ...cluster.leases.keys()], [], title);
  }
});

t.test('a pod that cannot run ends its start with the reason of the cluster, and is removed', async (t) => {
  const { cluster, start } = await scene(t);
  const unschedulable = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' };
  const cases: [object, string, RegExp][] = [
    [waiting('ImagePullBackOff'), 'imageMissing', /cannot use the image oratorio:dev: ImagePullBackOff: words/],
    [waiting('ErrImageNeverPull'), 'imageMissing', /Place\.Pod\.PullImages/],
    [waiting('CreateContainerConfigError'), 'placeUnavailable', /CreateContainerConfigError/],
    [{ phase: 'Pending', conditions: [unschedulable] }, 'placeUnavailable', /no node for the pod: 0\/3 nodes/],
    [{ phase: 'Failed', reason: 'Evicted', message: 'low on memory' }, 'placeUnavailable', /Evicted: low on memory/],
  ];
  for (const [state, kind, message] of cases) {
    cluster.statusOfNew = () => structuredClone(state);
    await t.rejects(start(), { kind, message });
    t.same([...cluster.pods.keys(), ...cluster.leases.keys()], []);
  }
});

t.test('a request that the cluster delays with Retry-After is repeated', async (t) => {
  const { cluster, place } = await scene(t);
  let refusals = 0;
  cluster.intercept = (request, response) => {
    if (!request.startsWith('GET') || refusals === 2) return false;
    refusals += 1;
    answer(429, '', { 'retry-after': '0' })(response);
    return true;
  };
  t.equal(await place().endLeftovers(), 0);
  t.equal(refusals, 2);
});

t.test('a workspace that another Hub runs in the cluster is not started', async (t) => {
  const { cluster, place, request, start } = await scene(t);
  const first = await start();
  const other = new PodPlace(request.settings, 'another-home', { answerMs: 60_000, env: {} });
  const second = { ...request, marker: marker.replace(/1$/, '2') };
  await t.rejects(other.start(second), { message: /holds the lease oratorio-key\. Stop the workspace there/ });
  const lease = cluster.leases.get('oratorio-key');
  lease.spec.renewTime = '2020-01-01T00:00:00.000000Z';
  await t.rejects(other.start(second), { message: new RegExp(`The pod ${name} of another Hub runs this workspace`) });
  t.same([...cluster.pods.keys()], [name]);
  first.detach();
  t.equal(await other.endLeftovers('key'), 0, 'another Hub ends no pod of ours');
  t.equal(await place().endLeftovers('key'), 1);
});

t.test('the end of a pod is seen after watches that fail, and its reason is logged', async (t) => {
  const { cluster, request, start } = await scene(t);
  const child = await start();
  const faults = [
    answer(410, status('too old')),
    answer(500, ''),
    answer(200, 'garbage'),
    (response: ServerResponse) => void response.destroy(),
  ];
  let asked = 0;
  cluster.intercept = (incoming, response) => {
    if (incoming !== 'GET /api/v1/namespaces/work/pods') return false;
    const fault = faults[asked];
    asked += 1;
    fault?.(response);
    return fault !== undefined;
  };
  cluster.setStatus(name, { ...running, message: 'changed' });
  await eventually(() => asked > faults.length || undefined, 'the pod is watched again');
  cluster.setStatus(name, { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' });
  t.match(await child.exited, { exitCode: null, signal: null });
  t.match(readFileSync(logFiles(request.logDirectory).stderr, 'utf8'), /ended the pod: Evicted: The node was low/);
  await child.gone();
  t.same([...cluster.pods.keys(), ...cluster.leases.keys()], []);
});

t.test('a lost node, a refusal and a silent cluster are reported as lost, not as an end', async (t) => {
  const { cluster, start } = await scene(t);
  const child = await start();
  const reports: boolean[] = [];
  child.onReach?.((isLost) => reports.push(isLost));
  const next = (count: number) => eventually(() => reports.length >= count || undefined, `report ${count}`);
  cluster.setStatus(name, {
    ...running,
    conditions: [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }],
  });
  await next(1);
  cluster.setStatus(name, running);
  await next(2);
  cluster.intercept = (_, response) => {
    answer(401, status('Unauthorized'))(response);
    return true;
  };
  cluster.setStatus(name, running);
  await next(3);
  cluster.intercept = () => false;
  await next(4);
  t.same(reports.slice(0, 4), [true, false, true, false]);
  t.equal(await Promise.race([child.exited, 'runs']), 'runs');
});

t.test('a pod of our name with another uid is neither followed nor ended', async (t) => {
  const { cluster, start, place, request } = await scene(t);
  const child = await start();
  const pod = cluster.pods.get(name);
  t.ok(pod);
  const uid = pod?.object.metadata.uid;
  if (pod) pod.object.metadata.uid = 'another';
  cluster.setStatus(name, running);
  t.match(await child.exited, { observed: false }, 'our pod is gone');
  await child.gone();
  t.same([...cluster.pods.keys()], [name]);
  if (pod) pod.object.metadata = { ...pod.object.metadata, labels: { ...pod.object.metadata.labels }, name: 'other' };
  t.equal(await place().endLeftovers('key'), 0, 'labels of ours on a pod with another name do not count');
  const handle = { kind: 'pod', namespace: 'work', name, uid } as const;
  const found = await place().find({ ...request, handle });
  t.match(await found.exited, { observed: false });
  found.detach();
});

t.test('a pod has the rights of the user only, and is created by no controller', async (t) => {
  const { request, settings } = await scene(t);
  const spec = podSpec({ ...request, homeLabel: 'home' }, [1_000, 1_000]);
  t.match(spec, {
    kind: 'Pod',
    spec: {
      ...{ restartPolicy: 'Never', automountServiceAccountToken: false, hostNetwork: false, hostPID: false },
      securityContext: { runAsNonRoot: true, runAsUser: 1_000, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          imagePullPolicy: 'Never',
          resources: { limits: { memory: '512Mi', cpu: '1500m' } },
          securityContext: {
            ...{ allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true },
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  });
  t.notMatch(JSON.stringify(spec), /document/);
  const home = join(request.home, 'a$(HOME)$$');
  const odd = podSpec({ ...request, home, homeLabel: 'home' }).spec.containers[0];
  const written = odd?.env.find(({ name: each }) => each === 'ORATORIO_HOME')?.value;
  t.equal(written, `${request.home}/a$$(HOME)$$$$`, 'regression: the cluster replaces no part of a path');
  const path = join(request.workspacePath, '$(HOME)');
  mkdirSync(path);
  const args = podSpec({ ...request, workspacePath: path, homeLabel: 'home' }).spec.containers[0]?.args;
  t.equal(args?.at(-1), `${request.workspacePath}/$$(HOME)`);
  t.throws(() => podSpec({ ...request, homeLabel: 'home', settings: { ...settings, volumes: [] } }), {
    message: /A pod cannot reach the workspace .*Place\.Pod\.Volumes/,
  });
  t.throws(() => podSpec({ ...request, homeLabel: 'home', settings: { ...settings, volumes: ['/x'] } }), {
    message: /\/x is not written as/,
  });
});

t.test('a kubeconfig file that cannot be used is refused with its fault', async (t) => {
  const { cluster, place } = await scene(t);
  const cases: [string, (text: string) => string, RegExp][] = [
    ['not YAML', () => '{', /cannot be used/],
    ['no context', (text) => text.replace('current-context: here', 'current-context: there'), /no context there/],
    ['no cluster', (text) => text.replace('cluster: here', 'cluster: away'), /no cluster away/],
    ['http', (text) => text.replace('https:', 'http:'), /not an https address/],
    ['no verification', (text) => text.replace('server:', 'insecure-skip-tls-verify: true, server:'), /insecure/],
    ['a proxy', (text) => text.replace('server:', 'proxy-url: http://proxy.test, server:'), /reached directly/],
    ['invalid', (text) => text.replace(/contexts:.*/, 'contexts: 1'), /contexts is invalid/],
  ];
  for (const [title, change, message] of cases) {
    const file = cluster.configWith(change);
    t.throws(() => place(file), { name: 'PlaceError', kind: 'placeRefused', message }, title);
  }
  t.throws(() => place('/nowhere/config'), { message: /ENOENT.*Place\.Pod\.Kubeconfig/ });
});

t.test(
  'a credential program of the kubeconfig file is run once, without a shell, and its output is never shown',
  async (t) => {
    const { cluster, home, place } = await scene(t);
    const withProgram = (script: string) => {
      const program = join(home, 'login');
      writeFileSync(program, `#!/bin/sh\necho x >> ${home}/runs\n${script}\n`, { mode: 0o755 });
      const exec = `exec: { apiVersion: client.authentication.k8s.io/v1, command: ${program}, args: ["$(touch ${home}/shell)"] }`;
      return cluster.configWith((text) => text.replace(`token: ${token}`, exec));
    };
    const good = place(withProgram(`echo '{"status":{"token":"${token}"}}'`));
    t.equal(await good.version(), 'v1.30.4');
    t.equal(await good.endLeftovers(), 0);
    t.equal(readFileSync(join(home, 'runs'), 'utf8'), 'x\n');
    t.notOk(existsSync(join(home, 'shell')));
    const bad = place(withProgram(`echo secret-output; exit 1`));
    const error = await bad.endLeftovers().catch((thrown: Error) => thrown);
    t.match(error, { name: 'PlaceError', message: /credential program .* failed/ });
    t.notMatch(String(error), /secret-output/);
    await t.rejects(bad.endLeftovers(), { message: /credential program .* failed/ });
    t.equal(readFileSync(join(home, 'runs'), 'utf8'), 'x\nx\n', 'regression: a failure is not repeated at once');
  },
);

t.test('regression: a login after the cluster has refused the credentials reaches a pod that runs', async (t) => {
  const { cluster, home, place, request } = await scene(t);
  const [file, login] = [join(home, 'token'), join(home, 'login')];
  writeFileSync(file, token);
  writeFileSync(login, `#!/bin/sh\nread -r line && exit 1\nprintf '{"status":{"token":"%s"}}' "$(cat ${file})"\n`, {
    mode: 0o755,
  });
  const exec = `exec: { apiVersion: client.authentication.k8s.io/v1, command: ${login} }`;
  const child = await place(
    cluster.configWith((text) => text.replace(`token: ${token}`, exec)),
    undefined,
    0,
  ).start(request);
  t.teardown(() => child.detach());
  const reports: boolean[] = [];
  child.onReach?.((isLost) => reports.push(isLost));
  const refuse = (_: string, response: ServerResponse) => {
    answer(401, status('Unauthorized'))(response);
    return true;
  };
  // A line feed cannot be in a header.
  writeFileSync(file, 'new\\ntoken');
  cluster.intercept = refuse;
  cluster.setStatus(name, running);
  await eventually(() => reports[0], 'the pod is lost');
  cluster.intercept = () => false;
  writeFileSync(file, token);
  await eventually(() => reports[1] === false || undefined, 'the pod is back');
  t.equal(await Promise.race([child.exited, 'runs']), 'runs');
});

t.test('regression: the end of a pod is seen when its reason cannot be logged', async (t) => {
  const { cluster, request, start } = await scene(t);
  const child = await start();
  const { stderr } = logFiles(request.logDirectory);
  rmSync(stderr);
  mkdirSync(stderr);
  cluster.setStatus(name, { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' });
  t.match(await child.exited, { exitCode: null, signal: null });
  cluster.intercept = (incoming, response) => {
    if (!incoming.startsWith('DELETE')) return false;
    answer(200, '{}')(response);
    return true;
  };
  const asked = () => cluster.requests.filter((each) => each.startsWith('DELETE')).length;
  const gone = child.gone();
  await eventually(() => asked() > 1 || undefined, 'the deletion is repeated');
  child.detach();
  await t.rejects(gone, 'a detached pod is no longer deleted');
});

t.test('regression: the lease of a Hub that was killed before it created a pod is removed', async (t) => {
  const { cluster, place, request } = await scene(t);
  const create = 'POST /api/v1/namespaces/work/pods';
  const reached = Promise.withResolvers<void>();
  cluster.intercept = (incoming) => {
    if (incoming === create) reached.resolve();
    return incoming === create;
  };
  place()
    .start(request)
    .catch(() => undefined);
  await reached.promise;
  t.same([...cluster.leases.keys()], ['oratorio-key']);
  cluster.intercept = () => false;
  t.equal(await place().endLeftovers('key'), 0);
  t.same([...cluster.leases.keys()], []);
});
