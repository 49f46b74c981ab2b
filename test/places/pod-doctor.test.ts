/** Pods in the report of `oratorio doctor` and in the capabilities of the Hub. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { runInProcess } from '../cli/in-process.ts';
import { startTestHub, temporaryDirectory } from '../hub/harness.ts';
import { fakeCluster } from './fake-cluster.ts';

/** A home whose settings name a cluster. */
function homeOf(t: Test, Pod: Readonly<Record<string, unknown>>): string {
  const home = temporaryDirectory(t, 'oratorio-home-');
  const settings = { Place: { Pod: { Image: 'oratorio:dev', AllowRoot: true, ...Pod } } };
  writeFileSync(join(home, 'config.json'), JSON.stringify(settings), { mode: 0o600 });
  return home;
}

const findingIn = async (home: string) => {
  const { stdout } = await runInProcess(home, 'doctor', '--offline', '--json');
  return JSON.parse(stdout).checks.find(({ id }: { readonly id: string }) => id === 'machine.pods');
};

t.test('doctor names the cluster that runs pods, and otherwise the reason and the next step', async (t) => {
  const cluster = await fakeCluster(t);
  const Volumes = ['/=hostPath:/'];
  const good = { Kubeconfig: cluster.kubeconfig, Volumes };
  t.match(await findingIn(homeOf(t, good)), { status: 'ok', saw: /kubernetes v1\.30\.4 at .*namespace work/ });
  const bad: [string, object, RegExp][] = [
    ['no file', { Kubeconfig: '/nowhere/config', Volumes }, /ENOENT.*Place\.Pod\.Kubeconfig/],
    [
      'no volume for the home',
      { ...good, Volumes: ['/srv=claim:work'] },
      /A pod cannot reach the .*Place\.Pod\.Volumes/,
    ],
    ['no image', { ...good, Image: '' }, /No image is set/],
  ];
  for (const [name, Pod, saw] of bad)
    t.match(await findingIn(homeOf(t, { ...Pod })), { status: 'skip', where: 'Place.Pod', saw }, name);
  cluster.intercept = (_, response) => {
    response.writeHead(403).end('{"message":"pods is forbidden"}');
    return true;
  };
  t.match(await findingIn(homeOf(t, good)), { saw: /denies a request: pods is forbidden\. Oratorio needs pods/ });
  t.equal(await findingIn(homeOf(t, { Kubeconfig: cluster.kubeconfig })), undefined, 'not without a volume');
});

t.test('the Hub names the place pod when the settings have a volume for it', async (t) => {
  for (const [Volumes, isNamed] of [
    [['/srv=claim:work'], true],
    [[], false],
  ] as const) {
    const hub = await startTestHub(t, { home: homeOf(t, { Volumes }) });
    const { body } = await hub.call('GET', '/v1/status');
    t.equal((body.capabilities.places ?? []).includes('pod'), isNamed);
    await hub.shutdown();
  }
});
