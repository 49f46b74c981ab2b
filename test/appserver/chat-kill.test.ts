/** kill -9 of an agent server during chat requests of the official client, which sends them again to the next server. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { APIError } from 'openai';
import t, { type Test } from 'tap';
import { unusedPort } from '../ports.ts';
import { eventually, makeWorkspace, type ServerProcess, serving, spawnServer } from './harness.ts';

interface Place {
  readonly path: string;
  readonly home: string;
  readonly client: OpenAI;
}

async function place(t: Test): Promise<Place> {
  const port = await unusedPort();
  const Api = { Enabled: true, Port: port, ApiKey: 'a-key', AutoApprove: true };
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'a-key', maxRetries: 0 });
  return { ...makeWorkspace(t, { Api, DashBoard: { Enabled: false } }), client };
}

async function start(t: Test, { path, home }: Place): Promise<ServerProcess> {
  const server = spawnServer(t, { path, home });
  await serving(server, path);
  return server;
}

const question = (content: string) => ({ model: 'demo', messages: [{ role: 'user' as const, content }] });

t.test('regression: H43 after kill -9 a repeated chat request runs no command again', async (t) => {
  const at = await place(t);
  const { path, client } = at;
  const first = await start(t, at);
  const file = (name: string) => join(path, name);
  const read = (name: string) => (existsSync(file(name)) ? readFileSync(file(name), 'utf8') : '');
  const slow = (name: string) => question(`run: printf a >> ${name}; sleep 300; printf b >> ${name}`);
  const key = (name: string) => ({ headers: { 'idempotency-key': name } });
  const count = (tries: string) => ({ headers: { 'x-stainless-retry-count': tries } });
  const session = { metadata: { session_id: 's1' } };

  const done = await client.chat.completions.create(question('run: printf x >> done'), key('done'));
  t.equal(read('done'), 'x');
  const cut = [
    client.chat.completions.create({ ...slow('keyed'), ...session }, key('keyed')),
    client.chat.completions.create(slow('plain'), key('plain')),
    client.chat.completions.create(slow('counted'), count('0')),
  ].map((asked) =>
    asked.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  for (const name of ['keyed', 'plain', 'counted']) {
    await eventually(() => read(name) === 'a' || undefined, `the command of ${name} runs`);
  }
  first.child.kill('SIGKILL');
  await first.ended;
  for (const error of await Promise.all(cut))
    t.ok(error instanceof Error, 'the client of the killed server gets an error');

  await start(t, at);
  t.strictSame(await client.chat.completions.create(question('run: printf x >> done'), key('done')), done);
  const joined = await client.chat.completions.create({ ...slow('keyed'), ...session }, key('keyed'));
  t.match(joined, { x_agent: { steps: [{ tool: 'Exec', outcome: 'failed' }] } }, 'the turn of a session continues');
  t.strictSame(await client.chat.completions.create({ ...slow('keyed'), ...session }, key('keyed')), joined);
  const again = [
    () => client.chat.completions.create(slow('plain'), key('plain')),
    () => client.chat.completions.create(slow('counted'), count('1')),
  ];
  for (const ask of again) {
    const error = await ask().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!(error instanceof APIError)) throw error;
    t.match(error, { status: 422, code: 'outcome_unknown' });
  }
  for (const name of ['keyed', 'plain', 'counted']) t.equal(read(name), 'a', `${name} ran once`);
  t.equal(read('done'), 'x');
  await client.chat.completions.create(question('run: printf y >> fresh'), key('fresh'));
  t.equal(read('fresh'), 'y', 'another key runs its turn');
});
