import { registerHooks } from 'node:module';
import t, { type Test } from 'tap';
import { createServer, text } from '../../src/http/index.ts';
import { optionsFrom } from './support.ts';

const options = () => optionsFrom({ routes: [{ method: 'GET', path: '/', handler: () => text(200, 'x') }] }, []);

t.afterEach(() => {
  delete process.env['ORATORIO_HTTP_ADAPTER'];
});

t.test('the requested adapter is used unless the environment names another', async (t) => {
  for (const [adapter, library] of [
    ['uws', /^uWebSockets\.js /],
    ['uws-old', /^uWebSockets\.js uws-pack /],
    ['node', /^node:http$/],
  ] as const) {
    const server = await createServer(options(), adapter);
    t.match(server, { adapter: adapter === 'node' ? 'node' : 'uws', library });
    await server.close(0);
  }
  process.env['ORATORIO_HTTP_ADAPTER'] = 'node';
  const server = await createServer(options(), 'uws');
  t.equal(server.adapter, 'node');
  await server.close(0);
  process.env['ORATORIO_HTTP_ADAPTER'] = 'apache';
  await t.rejects(createServer(options()), /must be "uws", "uws-old" or "node"/);
});

const noBinary = { message: 'no binary for this platform' };

/** The module once more, on a platform that uWebSockets.js has no binary for. */
async function withoutBinary(t: Test): Promise<typeof import('../../src/http/create-server.ts')> {
  const again = new URL('../../src/http/create-server.ts?without-binary', import.meta.url).href;
  const source = `export const loadUws = () => Promise.reject(new Error('${noBinary.message}')); export const uwsBuilds = [];`;
  const url = `data:text/javascript,${encodeURIComponent(source)}`;
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      context.parentURL === again && specifier === './load-uws.ts'
        ? { url, shortCircuit: true }
        : next(specifier, context),
  });
  // The adapter is loaded when a server is made.
  t.teardown(() => hooks.deregister());
  return import(again);
}

t.test('without a binary auto falls back with a warning, and uws fails', async (t) => {
  const { createServer: mocked } = await withoutBinary(t);
  let reason: unknown;
  const server = await mocked(options(), 'auto', (error) => {
    reason = error;
  });
  t.equal(server.adapter, 'node');
  t.match(reason, noBinary);
  await server.close(0);
  await t.rejects(mocked(options(), 'uws'), noBinary);
});

t.test('a mistake in the routes is not reported as a missing binary', async (t) => {
  const route = { method: 'GET', path: '/', handler: () => text(200, 'x') } as const;
  await t.rejects(
    createServer(optionsFrom({ routes: [route, route] }, []), 'auto', () => t.fail('fell back')),
    TypeError,
  );
});
