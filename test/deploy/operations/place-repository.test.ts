/** Spelling and directory of a repository that a stack gets. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { repositoryNamed } from '../../../src/deploy/files/index.ts';
import { appKey } from '../../../src/deploy/github/index.ts';
import { layoutOf } from '../../../src/deploy/layout.ts';
import { asReported, placed } from '../../../src/deploy/operations/place-repository.ts';
import { Forge } from '../../review/forge/index.ts';

const { signal } = new AbortController();
const given = repositoryNamed('octo/app');

/** A forge that shows its repositories to the App only. */
async function privateForge(t: Test) {
  const forge = await new Forge().start();
  t.teardown(() => forge.stop());
  const privateKey = appKey(forge.app.privateKey, 'The key');
  return { forge, app: { appId: String(forge.app.id), privateKey } };
}

/** A forge that answers every request with `listener`. */
async function forgeWith(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test('a public repository gets the spelling that the forge reports', async (t) => {
  const asked: (string | undefined)[] = [];
  const endpoint = await forgeWith(t, ({ url, headers }, response) => {
    asked.push(url, headers.authorization);
    response.end(JSON.stringify({ full_name: 'Octo/App' }));
  });
  for (const each of [endpoint, `${endpoint}/`]) {
    const found = await asReported(given, { endpoint: each, app: null }, { signal });
    t.match(found, { fullName: 'Octo/App', directory: 'Octo__App', workspacePath: '/workspace/Octo__App' });
  }
  t.same(asked, ['/repos/octo/app', undefined, '/repos/octo/app', undefined]);
});

t.test('a private repository gets the spelling that the forge reports to the App', async (t) => {
  const { forge, app } = await privateForge(t);
  forge.addRepository('Octo', 'App');
  const endpoint = forge.apiUrl;
  t.equal((await asReported(given, { endpoint, app: null }, { signal })).fullName, 'octo/app', 'without the App');
  t.equal((await asReported(given, { endpoint, app }, { signal })).fullName, 'Octo/App');
  t.same(forge.mistakes, []);
  const writes = forge.requests.filter(({ method, path }) => method !== 'GET' && !path.endsWith('/access_tokens'));
  t.same(writes, [], 'only a token is made');
});

t.test('a repository that cannot be looked up keeps the given spelling', async (t) => {
  const { forge, app } = await privateForge(t);
  const name = async (endpoint: string, of = app) =>
    (await asReported(given, { endpoint, app: of }, { signal })).fullName;
  t.equal(await name(forge.apiUrl), 'octo/app', 'the App is not installed for it');
  forge.addRepository('Octo', 'App');
  t.equal(await name(forge.apiUrl, { ...app, appId: '1' }), 'octo/app', 'the key is of another App');
  t.equal(await name('http://127.0.0.1:1'), 'octo/app', 'the forge does not answer');
  const answers: Record<string, string> = {
    'a renamed repository': JSON.stringify({ full_name: 'Octo/Renamed' }),
    'a name that leaves the directory': JSON.stringify({ full_name: '../octo/app' }),
    'no name': '{}',
    'no JSON': '<html>',
    'an endless answer': JSON.stringify({ full_name: 'Octo/App', more: 'x'.repeat(1_100_000) }),
  };
  for (const [title, body] of Object.entries(answers)) {
    const endpoint = await forgeWith(t, (_, response) => response.end(body));
    t.equal(await name(endpoint), 'octo/app', title);
  }
});

t.test('a checkout in another spelling is used, by its route or by its directory alone', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-place-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const layout = layoutOf(directory);
  const repository = repositoryNamed('Octo/App');
  t.match(placed(repository, layout, null), { directory: 'Octo__App' }, 'without a workspace');
  mkdirSync(join(layout.workspace, 'octo__app'), { recursive: true });
  mkdirSync(join(layout.workspace, 'octo__app2'));
  t.match(placed(repository, layout, null), {
    fullName: 'Octo/App',
    directory: 'octo__app',
    workspacePath: '/workspace/octo__app',
  });
  mkdirSync(join(layout.workspace, 'Octo__App'));
  t.match(placed(repository, layout, null), { directory: 'Octo__App' }, 'its own spelling comes first');
  t.match(placed(repositoryNamed('foo/bar'), layout, null), { directory: 'foo__bar' });
});
