/** The packed package, installed from its tarball into programs outside of this repository, in Node and in a browser. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { build } from 'vite';
import { buildProduct } from '../../scripts/bundles.ts';
import { stageInspector } from '../../scripts/package/stage-inspector.ts';
import { isBuilt } from '../../scripts/stamp.mjs';
import { root } from '../../scripts/toolchain.mjs';
import { staticAnswers } from '../../src/http/index.ts';
import { keptPage } from '../ui/kept-page.ts';
import { axe } from '../ui/scene.ts';

/** Size limit of the tarball. Four fifths of its size are elkjs. */
const tarballLimit = 700_000;

const home = realpathSync(mkdtempSync(join(tmpdir(), 'inspector-package-')));
t.teardown(() => rmSync(home, { recursive: true, force: true }));
const at = (path: string): string => join(home, path);
const openPage = keptPage({ width: 1360, height: 860 });

/** Creates a program directory with the package, from its tarball and packages of this checkout, without a network. */
async function install(): Promise<string> {
  if (!isBuilt() || !existsSync(join(root, 'dist/inspector/page'))) {
    await buildProduct('inspector');
    await build({ configFile: join(root, 'src/ui/inspector/vite.config.ts'), logLevel: 'error' });
  }
  stageInspector(at('staged'));
  const env = { ...process.env, npm_config_cache: at('cache'), npm_config_registry: 'http://127.0.0.1:9', HOME: home };
  const npm = (cwd: string, ...words: string[]): string =>
    execFileSync('npm', [...words, '--offline', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd,
      env,
      encoding: 'utf8',
    });
  const [packed] = JSON.parse(npm(at('staged'), 'pack', '--json', '--pack-destination', home)) as {
    filename: string;
  }[];
  const tarball = at(packed?.filename ?? '');
  mkdirSync(at('app'));
  writeFileSync(at('app/package.json'), '{"private":true,"type":"module"}');
  const others = ['xstate', 'react', 'react-dom', 'scheduler', 'loose-envify', 'js-tokens'].map((name) =>
    join(root, 'node_modules', name),
  );
  npm(at('app'), 'install', '--install-links', tarball, ...others);
  return tarball;
}
const tarball = await install();
for (const example of ['node.mjs', 'react.jsx'])
  cpSync(join(root, 'docs/examples/inspector', example), at(`app/${example}`));
cpSync(join(root, 'test/fixtures/inspector/contexts.mjs'), at('app/contexts.mjs'));

/** Runs a program of the directory. Returns its output lines as a stream. */
function start(t: Test, ...words: string[]): AsyncIterator<string> {
  const child = spawn(process.execPath, words, { cwd: at('app'), stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(async () => {
    const ended = once(child, 'exit');
    if (child.kill()) await ended;
  });
  return createInterface(child.stdout)[Symbol.asyncIterator]();
}

const row = (page: Page, name: string) => page.getByRole('treeitem', { name });
const lit = (page: Page, state: string) =>
  page.locator(`.node.active[data-state="${state}"]`).waitFor({ state: 'attached' });
const chart = (page: Page) => page.getByRole('img', { name: /^Statechart/ });

t.test('the tarball is small, contains all licences, and contains no file of the product', async (t) => {
  t.ok(statSync(tarball).size <= tarballLimit, `${statSync(tarball).size} bytes`);
  const installed = at('app/node_modules/@oratorio/inspector');
  t.match(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')), {
    name: '@oratorio/inspector',
    dependencies: undefined,
    peerDependencies: { xstate: String },
  });
  t.match(readFileSync(join(installed, 'THIRD-PARTY-NOTICES.md'), 'utf8'), /## elkjs .*Eclipse Public License/s);
  t.match(readFileSync(join(installed, 'page/licenses.txt'), 'utf8'), /preact/);
  for (const entry of ['node.js', 'browser.js']) {
    t.notMatch(
      readFileSync(join(installed, entry), 'utf8'),
      /agent-server|webhook-ingress/,
      `${entry} contains no machine of Oratorio`,
    );
  }
});

t.test('a program compiles against the declarations', async () => {
  writeFileSync(
    at('app/typed.ts'),
    `import { createInspector, type Inspector } from '@oratorio/inspector';
import { createActor, createMachine } from 'xstate';
const inspector: Inspector = createInspector({ port: 0, mask: ({ path, value }) => (path === 'key' ? null : value) });
createActor(createMachine({}), { inspect: inspector.inspect });
export const url: Promise<string> = inspector.url;
`,
  );
  const options = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    '',
  ];
  execFileSync(join(root, 'node_modules/.bin/tsc'), [...options, 'typed.ts'], { cwd: at('app'), stdio: 'inherit' });
});

t.test('the example in Node shows chart, earlier states, causes and a simulation', async (t) => {
  const lines = start(t, 'node.mjs');
  const { value: url } = await lines.next();
  const { page, complaints, foreign } = await openPage(t, { origin: new URL(url).origin });
  await page.goto(url);
  await row(page, 'my order').click();
  await lit(page, 'paid');
  t.notMatch(page.url(), /token/, 'the address no longer contains the token');
  await row(page, 'clock').waitFor();
  await row(page, 'pay').waitFor();
  t.strictSame(await axe(page), []);

  await page.getByRole('tab', { name: 'Snapshot' }).click();
  await page.getByRole('row', { name: /card token.*\(masked\)/i }).waitFor();
  await page.getByRole('row', { name: /items.*score/i }).waitFor();
  await page.getByRole('tab', { name: 'Why' }).click();
  const why = page.locator('.why');
  await why.getByText('done(pay)').waitFor();
  await why.getByTitle('Look back to this step').last().click();
  const travel = page.getByRole('group', { name: 'Time travel' });
  await travel.getByRole('button', { name: 'Step back' }).click();
  await lit(page, 'paying');
  await travel.getByRole('button', { name: 'Live' }).click();
  await lit(page, 'paid');

  await page.getByRole('button', { name: 'Simulate from here' }).click();
  await page.getByRole('region', { name: 'Simulation' }).getByRole('button', { name: 'SHIP' }).click();
  await lit(page, 'shipped');
  t.strictSame(complaints, []);
  t.strictSame(foreign, []);
});

t.test('contexts that are hard to read neither slow down nor break a program in Node', async (t) => {
  writeFileSync(
    at('app/main.mjs'),
    `import { run } from './contexts.mjs';
const { inspector, times, faults } = run();
console.log(JSON.stringify({ url: await inspector.url, times, faults }));
setInterval(() => {}, 1_000);
`,
  );
  const { value } = await start(t, 'main.mjs').next();
  const { url, times, faults } = JSON.parse(value);
  t.strictSame(faults, []);
  for (const [name, ms] of Object.entries<number>(times)) t.ok(ms <= 1, `${name}: ${ms.toFixed(3)} ms an event`);
  const { page, complaints } = await openPage(t, { origin: new URL(url).origin });
  await page.goto(url);
  await showsContexts(t, page, complaints);
});

async function showsContexts(t: Test, page: Page, complaints: readonly string[]): Promise<void> {
  await row(page, 'circular').click();
  await page.getByRole('tab', { name: 'Snapshot' }).click();
  await page.getByRole('row', { name: /\(circular\)/ }).waitFor();
  for (const [name, fact] of [
    ['functions', /ƒ run/],
    ['numbers', /1180591620717411303424n/],
    ['getters', /\(getter\)/],
    ['secrets', /\*\*\*.*Ada/],
    ['huge', /more\]/],
  ] as const) {
    await row(page, name).click();
    await page.getByRole('row', { name: fact }).waitFor();
  }
  await page.getByRole('button', { name: 'Whole value of list' }).click();
  await page.locator('.whole-fact', { hasText: ', 500, 501,' }).waitFor();
  t.notMatch(await page.content(), /marker-secret|a getter was run/);
  t.equal(await row(page, 'never started').count(), 0);
  t.ok(await chart(page).isVisible());
  t.strictSame(complaints, []);
}

/** Serves a built application with the page of the package, under a strict Content-Security-Policy. */
async function serve(t: Test, directory: string): Promise<string> {
  const files = staticAnswers(directory);
  const server = createServer((request, response) => {
    const answer = files.get((request.url ?? '').split('?')[0] ?? '')?.({ header: () => undefined });
    for (const [name, value] of answer?.headers ?? []) response.setHeader(name, value);
    response.writeHead(answer?.status ?? 404).end(answer?.body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Builds an application of the directory with its page of the inspector. */
async function buildApp(script: string): Promise<string> {
  const name = script.split('.')[0] ?? '';
  writeFileSync(
    at('app/index.html'),
    `<!doctype html><div id="root"></div><script type="module" src="./${script}"></script>`,
  );
  await build({
    root: at('app'),
    configFile: false,
    logLevel: 'error',
    oxc: { jsx: { runtime: 'automatic', importSource: 'react' } },
    build: { outDir: at(`built-${name}`), emptyOutDir: true, modulePreload: { polyfill: false } },
  });
  cpSync(at('app/node_modules/@oratorio/inspector/page'), at(`built-${name}/inspector`), { recursive: true });
  return at(`built-${name}`);
}

t.test('the example in React with Strict Mode is shown in another tab, also after a reload', async (t) => {
  const origin = await serve(t, await buildApp('react.jsx'));
  const { page: app, context, complaints, foreign } = await openPage(t, { origin });
  await app.goto(origin);
  const opened = context.waitForEvent('page');
  await app.getByRole('button', { name: 'Inspect' }).click();
  const page = await opened;
  await row(page, 'my counter').waitFor();
  t.equal(await row(page, 'my counter').count(), 1, 'Strict Mode creates two actors and starts one');
  await lit(page, 'counting');
  await app.getByRole('button', { name: 'Add' }).click();
  await app.getByRole('button', { name: 'Stop' }).click();
  await lit(page, 'stopped');
  await page.getByRole('tab', { name: 'Snapshot' }).click();
  await page.getByRole('row', { name: /count.*1/i }).waitFor();

  await app.reload();
  await lit(page, 'counting');
  t.equal(await row(page, 'my counter').count(), 1);
  t.strictSame(complaints, []);
  t.strictSame(foreign, []);
});

t.test('contexts that are hard to read neither slow down nor break a program in a browser', async (t) => {
  writeFileSync(
    at('app/contexts-main.js'),
    `import { run } from './contexts.mjs';
const { inspector, times, faults } = run();
inspector.url.then((url) => Object.assign(globalThis, { result: { url, times, faults } }));
`,
  );
  const origin = await serve(t, await buildApp('contexts-main.js'));
  const { page: app, context, complaints } = await openPage(t, { origin });
  await app.goto(origin);
  const handle = await app.waitForFunction(() => (globalThis as { result?: unknown }).result);
  const { url, times, faults } = (await handle.jsonValue()) as {
    url: string;
    times: Record<string, number>;
    faults: string[];
  };
  t.strictSame(faults, []);
  for (const [name, ms] of Object.entries(times)) t.ok(ms <= 1, `${name}: ${ms.toFixed(3)} ms an event`);
  const page = await context.newPage();
  await page.goto(url);
  await showsContexts(t, page, complaints);
  await row(page, 'nodes').click();
  await page.getByRole('row', { name: /^body <body>/i }).waitFor();
});
