import t from 'tap';
import { createServer, text } from '../../src/http/index.ts';
import { optionsFrom } from './support.ts';

const options = () => optionsFrom({ routes: [{ method: 'GET', path: '/', handler: () => text(200, 'x') }] }, []);

t.afterEach(() => {
  delete process.env['ORATORIO_HTTP_ADAPTER'];
});

t.test('the adapter that was asked for; the environment has the last word', async (t) => {
  for (const adapter of ['uws', 'node'] as const) {
    const server = await createServer(options(), adapter);
    t.equal(server.adapter, adapter);
    await server.close(0);
  }
  process.env['ORATORIO_HTTP_ADAPTER'] = 'node';
  const server = await createServer(options(), 'uws');
  t.equal(server.adapter, 'node');
  await server.close(0);
  process.env['ORATORIO_HTTP_ADAPTER'] = 'apache';
  await t.rejects(createServer(options()), /must be "uws" or "node"/);
});

t.test('without a binary auto falls back and says so; uws refuses', async (t) => {
  const failure = new Error('no binary for this platform');
  const { createServer: mocked } = await t.mockImport<typeof import('../../src/http/create-server.ts')>(
    '../../src/http/create-server.ts',
    {
      '../../src/http/uws.ts': { loadUws: () => Promise.reject(failure), UwsServer: class {} },
    },
  );
  let reason: unknown;
  const server = await mocked(options(), 'auto', (error) => {
    reason = error;
  });
  t.equal(server.adapter, 'node');
  t.equal(reason, failure);
  await server.close(0);
  await t.rejects(mocked(options(), 'uws'), failure);
});

t.test('a mistake in the routes is not taken for a missing binary', async (t) => {
  const route = { method: 'GET', path: '/', handler: () => text(200, 'x') } as const;
  await t.rejects(
    createServer(optionsFrom({ routes: [route, route] }, []), 'auto', () => t.fail('fell back')),
    TypeError,
  );
});
