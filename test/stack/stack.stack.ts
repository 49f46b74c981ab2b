/** A review server from nothing to the end of its webhook: real engine, real containers, real gateway. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { must } from '../deploy/must.ts';
import { startOutside } from './outside.ts';
import { ownerOf, StackScene, wayTo } from './stack-scene.ts';
import { images } from './variables.ts';

const host = 'hooks.oratorio.dev';
const webhookPath = '/api/v1/sources/github/webhook';
const key = 'sk-of-the-stack-0123456789';
const healthMs = 60_000;

const outside = await startOutside(t);
const owner = ownerOf(t, outside);
const stack = new StackScene(owner);
t.teardown(() => stack.remove());

const given = (name: string, content: string): string => {
  const path = join(owner.root, name);
  writeFileSync(path, content, { mode: 0o600 });
  return path;
};

/** Looks until there is something. */
async function until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = Date.now() + 180_000;
  for (;;) {
    const found = await look().catch((error: unknown) => {
      if (error instanceof TypeError) return undefined;
      throw error;
    });
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`did not happen: ${what}\n${await stack.logs()}`);
    await pause(200);
  }
}
const isHealthy = async () =>
  (await fetch(`${stack.backendUrl}/health`, { signal: AbortSignal.timeout(healthMs) })).status === 200;

t.test('init builds the image, clones, writes everything and starts it', async (t) => {
  const { forge, url, modelUrl } = outside;
  await stack.done(
    ...['init', '--yes', '--json', '--repo', 'acme/shop', '--clone-url', `acme/shop=${url}/acme/shop.git`],
    ...['--build', root, '--base-image', images.base, '--image', images.product, '--gateway-image', images.gateway],
    ...['--provider', 'custom', '--endpoint', modelUrl, '--model', 'mock-model', '--api-key-file', given('key', key)],
    ...['--github-app-id', String(forge.app.id), '--github-url', url],
    ...['--github-app-private-key-file', given('app.pem', forge.app.privateKey)],
  );
  t.match(Object.keys(await stack.containers()).sort(), ['agent', 'backend']);
  t.ok(await isHealthy());
  t.match(await stack.inside('agent', 'git -C /workspace/acme__shop log --oneline | wc -l'), /1/);
  t.notMatch(await stack.inside('backend', 'env'), key, 'the key of the model is for the agent server only');
  t.match(JSON.parse(await stack.done('status', '--json')), { services: Array });
});

t.test('another repository can be added', async (t) => {
  await outside.forge.addGitRepository('acme', 'tools', { 'README.md': '# Tools\n' });
  await stack.done('add-repo', 'github:acme/tools', '--clone-url', `${outside.url}/acme/tools.git`, '--yes');
  t.match(stack.read('oratorio.config.json'), '/workspace/acme__tools');
  const sources = await until('the backend knows both', async () => {
    const found = await stack.api.sources();
    return found.length === 2 && found;
  });
  t.same(sources.map(({ repositoryKey }) => repositoryKey.split('/').slice(1).join('/')).sort(), [
    'acme/shop',
    'acme/tools',
  ]);
});

t.test('a webhook can be enabled, and only its address is answered', async (t) => {
  await stack.done(
    ...['webhook', 'enable', '--public-host', host, '--certificates', 'internal', '--yes'],
    ...['--secret-out', join(owner.root, 'secret')],
  );
  t.match(Object.keys(await stack.containers()).sort(), ['agent', 'backend', 'webhook-gateway']);
  const find = 'while ! find /data -name root.crt | grep -q .; do sleep 1; done; cat $(find /data -name root.crt)';
  const authority = await stack.inside('webhook-gateway', find);
  const gateway = await wayTo(t, { host, authority });
  const ask = async (path: string, method = 'GET') => (await fetch(`${gateway}${path}`, { method })).status;
  t.same(
    await Promise.all([
      ask(webhookPath),
      ask('/health'),
      ask('/api/v1/status'),
      ask(`${webhookPath}/x`, 'POST'),
      ask('/', 'POST'),
    ]),
    [404, 404, 404, 404, 404],
  );
  const unsigned = await fetch(`${gateway}${webhookPath}`, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json', 'x-github-event': 'ping', 'x-github-delivery': 'unsigned' },
  });
  t.match(await unsigned.json(), { error: { code: 'invalidSignature' } }, 'it has reached the backend');
  const reach = `exec 3<>/dev/tcp/agent/9100`;
  await t.rejects(
    stack.inside('webhook-gateway', `timeout 5 bash -c '${reach}'`),
    'the gateway has no way to the agent server',
  );

  t.test('a signed delivery becomes a review on the shared path, and a draft', async (t) => {
    const { forge, reviewer } = outside;
    const secret = stack.value('ORATORIO_GITHUB_WEBHOOK_SECRET');
    forge.app.hook = { url: `${gateway}${webhookPath}`, secret, contentType: 'json' };
    const held = reviewer.hold(({ number, round }) => number === 7 && round === 1);
    await outside.openPull(7);
    await forge.settled();
    t.ok(forge.deliveries.some(({ event, statusCode }) => event === 'pull_request' && statusCode === 202));
    const delivered = (await stack.api.deliveries()).find(
      ({ event, number }) => event === 'pull_request' && number === 7,
    );
    t.match(delivered, { outcome: 'queued' }, 'the delivery itself, and no later look, has asked for the review');
    await Promise.race([held.reached, until('the review runs', async () => reviewer.turns.length > 1)]);
    const find = 'cd /workspace && find .oratorio/worktrees -name discount.ts | head -n 1';
    const path = (await stack.inside('agent', find)).trim();
    t.match(path, /src\/discount\.ts$/, 'the worktree is in the container of the agent server');
    t.equal(
      await stack.inside('agent', `cat /workspace/${path}`),
      await stack.inside('backend', `cat /workspace/${path}`),
    );
    held.release();
    const draft = await until('the draft is there', async () => (await stack.api.pull(7))?.drafts[0]);
    t.match(JSON.stringify(draft), 'The loop runs one step too far');
    // Automatic reviews and write-back are on, so the draft is published, and the forge reports the comment of the App.
    await until('the published comment is delivered', async () =>
      forge.deliveries.some(({ event }) => event === 'issue_comment'),
    );
    t.same(
      forge.deliveries.map(({ event, statusCode }) => [event, statusCode]),
      [
        ['pull_request', 202],
        ['issue_comment', 202],
      ],
    );
    t.ok(reviewer.turns.every(({ request }) => request.headers.authorization === `Bearer ${key}`));
  });
});

t.test('doctor reports its observations, and finds only the untrusted authority of the test', async (t) => {
  outside.forge.app.hook = { ...outside.forge.app.hook, url: `https://${host}${webhookPath}` };
  const { code, stdout } = await stack.server('doctor', '--json');
  const { checks } = JSON.parse(stdout) as { checks: { id: string; status: string; saw: string }[] };
  const failed = checks.filter(({ status }) => status === 'fail');
  t.same(
    failed.map(({ id }) => id),
    ['ingress.certificate'],
    JSON.stringify(failed),
  );
  t.ok(checks.length > 20, `${checks.length} checks`);
  t.equal(code, 9);
});

t.test('logs are those of every container, without secrets', async (t) => {
  const logs = await stack.done('logs', '--tail', '200');
  for (const service of ['agent', 'backend', 'webhook-gateway']) t.match(logs, service);
});

t.test('restart makes the containers again and waits for them', async (t) => {
  const before = await stack.containers();
  await stack.done('restart', '--yes');
  const after = await stack.containers();
  t.same(Object.keys(after).sort(), Object.keys(before).sort());
  for (const service of Object.keys(before)) t.not(after[service], before[service], service);
  t.ok(await isHealthy());
});

t.test('an upgrade to an image that does not work is taken back', async (t) => {
  const context = join(owner.root, 'broken');
  await must('mkdir', [context], { timeoutMs: 10_000 });
  writeFileSync(join(context, 'Dockerfile'), `FROM ${images.product}\nENTRYPOINT ["false"]\n`);
  await must('docker', ['build', '--quiet', '--network', 'none', '--tag', 'oratorio:broken', context], {
    timeoutMs: 120_000,
  });
  const before = stack.value('ORATORIO_IMAGE');
  const { code, stderr } = await stack.server('upgrade', '--image', 'oratorio:broken', '--yes');
  t.equal(code, 9, stderr);
  t.equal(stack.value('ORATORIO_IMAGE'), before);
  t.ok(await until('it is healthy again', isHealthy));
  t.ok((await stack.api.pull(7))?.drafts.length, 'what was there is there');
});

t.test('webhook disable takes away the gateway and nothing else', async (t) => {
  const before = await stack.containers();
  await stack.done('webhook', 'disable', '--yes');
  const { 'webhook-gateway': gateway, ...others } = before;
  t.ok(gateway);
  t.same(await stack.containers(), others, 'backend and agent server were not touched');
  t.throws(() => stack.read('Caddyfile'));
  t.ok(stack.value('ORATORIO_GITHUB_WEBHOOK_SECRET'), 'the secret is kept');
  await t.rejects(fetch(`https://127.0.0.1:443/`));
});

t.test('no secret was printed by any of it', (t) => {
  const secrets = [
    'ORATORIO_AGENT_TOKEN',
    'ORATORIO_SERVICE_TOKEN',
    'ORATORIO_DASHBOARD_PASSWORD',
    'ORATORIO_GITHUB_WEBHOOK_SECRET',
  ];
  const printed = stack.printed.join('\n');
  for (const name of secrets) t.notMatch(printed, stack.value(name), name);
  t.notMatch(printed, key);
  t.notMatch(printed, outside.forge.app.privateKey.split('\n')[1]);
  t.end();
});
