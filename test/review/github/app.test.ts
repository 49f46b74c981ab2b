import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { GitHubSource, loadPrivateKey, SourceError } from '../../../src/review/github/index.ts';
import { world, write } from './harness.ts';

const pemOf = (bits: number, type: 'pkcs1' | 'pkcs8'): string =>
  generateKeyPairSync('rsa', { modulusLength: bits }).privateKey.export({ type, format: 'pem' }).toString();
const shop = { owner: 'acme', name: 'shop' };

t.test('a private key is taken from the setting or from a file, in both forms', async (t) => {
  const pem = pemOf(2_048, 'pkcs1');
  const path = join(t.testdir(), 'app.pem');
  writeFileSync(path, pem, { mode: 0o600 });
  const fromFile = loadPrivateKey({ PrivateKey: '', PrivateKeyPath: path });
  t.match(fromFile.pem, /^-----BEGIN PRIVATE KEY-----/);
  t.equal(fromFile.warning, undefined);
  const oneLine = pem.replaceAll('\n', '\\n');
  t.equal(loadPrivateKey({ PrivateKey: oneLine, PrivateKeyPath: '' }).pem, fromFile.pem);
  t.equal(loadPrivateKey({ PrivateKey: fromFile.pem, PrivateKeyPath: '' }).pem, fromFile.pem);
  chmodSync(path, 0o644);
  t.match(loadPrivateKey({ PrivateKey: '', PrivateKeyPath: path }).warning, /can be read by other users/);
});

t.test('a private key that will not do is refused in words, without a part of it', async (t) => {
  const directory = t.testdir({ 'huge.pem': 'x'.repeat(70_000) });
  const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const cases = [
    [{ PrivateKey: '', PrivateKeyPath: '' }, 'privateKeyMissing'],
    [{ PrivateKey: '', PrivateKeyPath: join(directory, 'none.pem') }, 'privateKeyMissing'],
    [{ PrivateKey: '', PrivateKeyPath: directory }, 'privateKeyMissing'],
    [{ PrivateKey: '', PrivateKeyPath: join(directory, 'huge.pem') }, 'privateKeyInvalid'],
    [{ PrivateKey: '-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0', PrivateKeyPath: '' }, 'privateKeyInvalid'],
    [
      { PrivateKey: elliptic.export({ type: 'pkcs8', format: 'pem' }).toString(), PrivateKeyPath: '' },
      'privateKeyInvalid',
    ],
    [{ PrivateKey: pemOf(1_024, 'pkcs8'), PrivateKeyPath: '' }, 'privateKeyTooShort'],
  ] as const;
  for (const [settings, code] of cases) {
    t.throws(() => loadPrivateKey(settings), { name: 'SourceError', code, isRetryable: false });
  }
  t.throws(() => loadPrivateKey(cases[4][0]), { message: /^(?!.*c2VjcmV0)/s });
});

t.test('without an App id there is no source', async (t) => {
  const { another } = await world(t);
  t.throws(() => another({ AppId: undefined }), { code: 'appIdMissing' });
});

t.test('the diagnostics show identity and permissions of the App and the difference of the clocks', async (t) => {
  const { forge, source } = await world(t);
  forge.app.hook = { url: 'https://review.example.test/hook', secret: 'x', contentType: 'json' };
  t.match(await source.app(), {
    id: forge.app.id,
    slug: 'oratorio-test',
    missingPermissions: [],
    missingEvents: [],
    hook: { url: 'https://review.example.test/hook', isJson: true, verifiesTls: true, hasSecret: true },
  });
  forge.app.permissions = { metadata: 'read', contents: 'read', pull_requests: 'read' };
  forge.app.events = ['issue_comment'];
  forge.app.hook.secret = '';
  forge.clockOffsetMs = -20_000;
  const facts = await source.app();
  t.strictSame(facts.missingPermissions, ['pull_requests: write', 'issues: write', 'checks: write']);
  t.ok(facts.missingEvents.includes('pull_request'));
  t.equal(facts.hook.hasSecret, false);
  t.ok(facts.clockSkewMs >= 19_000, 'our clock is fast');
});

t.test('clocks that differ by minutes do not keep the App out', async (t) => {
  const { forge, another } = await world(t);
  for (const minutes of [-5, 5]) {
    const source = another();
    forge.clockOffsetMs = minutes * 60_000;
    const facts = await source.app();
    t.equal(Math.sign(facts.clockSkewMs), -Math.sign(minutes));
    t.match(await source.tokens.read(shop), /^ghs_/);
  }
});

t.test('a wrong App id and a wrong key have error codes of their own', async (t) => {
  const { another } = await world(t);
  const wrongKey = another({ PrivateKey: pemOf(2_048, 'pkcs1') });
  await t.rejects(wrongKey.app(), { code: 'appCredentialsInvalid', status: 401, isRetryable: false });
  await t.rejects(wrongKey.tokens.read(shop), { code: 'appCredentialsInvalid' });
  await t.rejects(another({ AppId: 1 }).app(), { code: 'notFound', status: 404 });
});

t.test('tokens are narrowed to one repository and to their purpose', async (t) => {
  const { forge, source, repo } = await world(t);
  await source.tokens.read(shop);
  await source.tokens.write(shop);
  const [read, write] = [...forge.tokens.values()];
  t.strictSame(read?.repositories, [repo.id]);
  t.notOk(Object.values(read?.permissions ?? {}).includes('write'));
  t.strictSame(write?.repositories, [repo.id]);
  t.equal(write?.permissions['contents'], undefined);
  t.equal(write?.permissions['pull_requests'], 'write');
});

t.test('a token of any length is used unchanged', async (t) => {
  const { forge, source, pull } = await world(t);
  forge.tokenFormat = 'stateless';
  t.ok((await source.tokens.read(shop)).length > 300);
  const facts = await source.readPull({ ...shop, repositoryKey: 'github:github.com/acme/shop' }, pull.number);
  t.match(facts, { headSha: pull.headSha });
});

t.test('concurrent requests for a token share one, and a new one is requested shortly before it expires', async (t) => {
  const { forge, source } = await world(t);
  const got = await Promise.all(Array.from({ length: 20 }, () => source.tokens.read(shop)));
  t.equal(new Set(got).size, 1);
  t.equal(await source.tokens.read(shop), got[0]);
  t.equal(forge.count('POST', /access_tokens$/), 1);
  t.equal(forge.count('GET', /\/installation$/), 1);
});

t.test('a token with less than five minutes left is not used any more', async (t) => {
  const { forge, source } = await world(t);
  forge.tokenLifeMs = 4 * 60_000;
  const first = await source.tokens.read(shop);
  t.not(await source.tokens.read(shop), first);
});

t.test('a token that was revoked early is replaced, once', async (t) => {
  const { forge, source, pull } = await world(t);
  const id = { ...shop, repositoryKey: 'github:github.com/acme/shop' };
  await source.readPull(id, pull.number);
  forge.tokens.clear();
  t.match(await source.readPull(id, pull.number), { number: pull.number });
  forge.faults.add({
    kind: 'status',
    status: 401,
    message: 'Bad credentials',
    times: 2,
    matches: (_, path) => /pulls/.test(path),
  });
  await t.rejects(source.readPull(id, pull.number), { code: 'unauthorized', status: 401 });
});

t.test('a failed request for a token rejects for all callers, and the next call tries again', async (t) => {
  const { forge, source } = await world(t, { retries: 0 });
  forge.faults.add({ kind: 'status', status: 500, matches: (_, path) => path.endsWith('access_tokens') });
  const all = await Promise.allSettled([source.tokens.read(shop), source.tokens.read(shop)]);
  t.ok(all.every(({ status }) => status === 'rejected'));
  t.match(await source.tokens.read(shop), /^ghs_/);
});

t.test('an App that is not installed or is suspended has an error code of its own', async (t) => {
  const { forge, source, repo } = await world(t);
  await t.rejects(source.tokens.read({ owner: 'other', name: 'thing' }), {
    code: 'appNotInstalled',
    isRetryable: false,
  });
  const installation = forge.installations.get(repo.installationId);
  if (!installation) throw new Error('There is no installation');
  installation.isSuspended = true;
  await t.rejects(source.tokens.read(shop), { code: 'installationSuspended' });
  installation.isSuspended = false;
  await source.tokens.read(shop);
  installation.isSuspended = true;
  await t.rejects(source.tokens.write(shop), { code: 'installationSuspended', status: 403 });
});

t.test('an app that was installed again is found', async (t) => {
  const { forge, source, repo } = await world(t);
  await source.tokens.read(shop);
  forge.installations.delete(repo.installationId);
  await t.rejects(source.tokens.write(shop), { code: 'appNotInstalled' });
  Object.assign(repo, { installationId: forge.install('acme').id });
  t.match(await source.tokens.write(shop), /^ghs_/);
});

t.test('a profile names the installation; a permission that was not granted is done without', async (t) => {
  const { forge, another, repo } = await world(t);
  const source = another({ InstallationProfiles: [{ Owner: 'ACME', InstallationId: repo.installationId }] });
  const installation = forge.installations.get(repo.installationId);
  delete installation?.permissions['checks'];
  t.match(await source.tokens.write(shop), /^ghs_/);
  t.equal(forge.count('GET', /\/installation$/), 0);
  t.equal([...forge.tokens.values()].at(-1)?.permissions['checks'], undefined);
  const looked = another();
  t.match(await looked.tokens.write(shop), /^ghs_/);
});

t.test('a check run is created at once when its permission is granted after the first token', async (t) => {
  const { forge, source, repo, pull } = await world(t);
  const installation = forge.installations.get(repo.installationId);
  if (!installation) throw new Error('There is no installation');
  delete installation.permissions['checks'];
  const request = {
    headSha: pull.headSha,
    externalId: 'run-1',
    status: 'in_progress',
    title: 'Reviewing',
    summary: '',
  };
  await t.rejects(source.send(write('checkRun', request)), { code: 'forbidden' });
  t.equal(repo.checkRuns.length, 0);
  installation.permissions['checks'] = 'write';
  await source.send(write('checkRun', request));
  t.match(repo.checkRuns, [{ externalId: 'run-1', status: 'in_progress' }]);
  // Withdrawn again: the other permissions still make a token.
  delete installation.permissions['checks'];
  forge.tokens.clear();
  await source.send(write('summary', { number: 7, itemId: 'i', body: 'Fine.' }));
  t.equal(repo.comments.length, 1);
});

/** World without the permission for checks, with a token that lacks it, and a check run of each id. */
async function withoutChecks(t: Test) {
  const made = await world(t);
  const installation = made.forge.installations.get(made.repo.installationId);
  if (!installation) throw new Error('There is no installation');
  const setChecks = (isGranted: boolean) => {
    if (isGranted) installation.permissions['checks'] = 'write';
    else delete installation.permissions['checks'];
  };
  setChecks(false);
  await made.source.tokens.write(shop);
  const begin = (externalId: string) =>
    made.source.send(
      write('checkRun', {
        ...{ headSha: made.pull.headSha, externalId, status: 'in_progress', title: 'Reviewing', summary: '' },
      }),
    );
  const begun = () => made.repo.checkRuns.map(({ externalId }) => externalId).sort();
  const withdrawFromTokens = () => {
    for (const [key, token] of made.forge.tokens) {
      made.forge.tokens.set(key, { ...token, permissions: { ...token.permissions, checks: 'none' } });
    }
  };
  return { ...made, setChecks, begin, begun, withdrawFromTokens };
}

t.test('a check run is created when its permission was granted and the token revoked', async (t) => {
  const { forge, setChecks, begin, begun } = await withoutChecks(t);
  setChecks(true);
  forge.tokens.clear();
  await begin('run-1');
  t.same(begun(), ['run-1']);
});

t.test('a check run is created after its permission was withdrawn and granted again', async (t) => {
  const { source, repo, setChecks, begin, begun, withdrawFromTokens } = await withoutChecks(t);
  setChecks(true);
  await begin('run-1');
  // A withdrawn permission is taken from the tokens that have it, and a new grant does not return it to them.
  setChecks(false);
  withdrawFromTokens();
  await t.rejects(begin('run-2'), { code: 'forbidden' });
  setChecks(true);
  await begin('run-3');
  t.same(begun(), ['run-1', 'run-3']);
  // Withdrawn between the look-up and the token, and granted again before the next check run.
  source.tokens.forget(shop, 'write', await source.tokens.write(shop));
  setChecks(false);
  await source.send(write('summary', { number: 7, itemId: 'i', body: 'Fine.' }));
  t.equal(repo.comments.length, 1);
  setChecks(true);
  await begin('run-4');
  t.same(begun(), ['run-1', 'run-3', 'run-4']);
  // Withdrawn and granted again between two check runs.
  withdrawFromTokens();
  await begin('run-5');
  t.same(begun(), ['run-1', 'run-3', 'run-4', 'run-5']);
});

t.test('GitHub Enterprise is asked under its own path', async (t) => {
  const { forge, source, pull } = await world(t, {}, { prefix: '/api/v3' });
  const id = { ...shop, repositoryKey: 'github:github.com/acme/shop' };
  t.match(await source.readPull(id, pull.number), { number: 7 });
  t.ok(forge.requests.every(({ path }) => path.startsWith('/api/v3/')));
});

t.test('nothing that is logged or thrown holds a token, a JWT or the key', async (t) => {
  const { forge, source, log, pull } = await world(t, { retries: 1 });
  const id = { ...shop, repositoryKey: 'github:github.com/acme/shop' };
  const token = await source.tokens.read(shop);
  const kinds = ['status', 'cutBefore', 'nonsense', 'cutBody'] as const;
  for (const kind of kinds) {
    forge.faults.add({
      kind,
      status: 500,
      message: `Bad token ${token}`,
      times: 9,
      matches: (_, path) => /pulls/.test(path),
    });
    const error = await source.readPull(id, pull.number).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    forge.faults.clear();
    if (!(error instanceof SourceError)) throw new Error(`${kind} did not fail`);
    const text = JSON.stringify([error, error.message, error.stack, error.cause, Object.entries(error)]) + log.join('');
    t.notMatch(text, token);
    t.notMatch(text, /eyJ|BEGIN|authorization/i);
  }
});

t.test('a source that was closed asks nothing any more', async (t) => {
  const { source } = await world(t, { retries: 0 });
  source.close();
  await t.rejects(source.app(), { code: 'connectionFailed' });
  t.type(source, GitHubSource);
});
