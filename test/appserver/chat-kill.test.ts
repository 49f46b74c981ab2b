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
  const session = { metadata: { session_id: 's1' } };

  const done = await client.chat.completions.create(question('run: printf x >> done'), key('done'));
  t.equal(read('done'), 'x');
  const cut = [
    client.chat.completions.create({ ...slow('keyed'), ...session }, key('keyed')),
    client.chat.completions.create(slow('plain'), key('plain')),
  ].map((asked) =>
    asked.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  // Tries again by itself, with `x-stainless-retry-count`.
  const patient = new OpenAI({ baseURL: client.baseURL, apiKey: client.apiKey, maxRetries: 20 });
  const counted = patient.chat.completions.create(slow('counted')).catch((error: unknown) => error);
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
  const plain = await client.chat.completions.create(slow('plain'), key('plain'));
  t.match(plain, { x_agent: { steps: [{ tool: 'Exec', outcome: 'failed' }] } }, 'the turn of a key continues');
  const error = await counted;
  if (!(error instanceof APIError)) throw error;
  t.match(error, { status: 422, code: 'outcome_unknown' }, 'a counted retry without a key is refused, and says why');
  for (const name of ['keyed', 'plain', 'counted']) t.equal(read(name), 'a', `${name} ran once`);
  t.equal(read('done'), 'x');
  await client.chat.completions.create(question('run: printf y >> fresh'), key('fresh'));
  t.equal(read('fresh'), 'y', 'another key runs its turn');
});

t.test('after kill -9 a response continues under its id, and its stream is taken up again', async (t) => {
  const at = await place(t);
  const { path, client } = at;
  const first = await start(t, at);
  const read = (name: string) => (existsSync(join(path, name)) ? readFileSync(join(path, name), 'utf8') : '');
  const slow = (name: string) => `run: printf a >> ${name}; sleep 300; printf b >> ${name}`;
  const behind = await client.responses.create({ model: 'demo', input: slow('behind'), background: true });
  const stream = await client.responses.create({ model: 'demo', input: slow('shown'), stream: true });
  let id = '';
  let last = -1;
  const follow = async () => {
    for await (const event of stream) {
      if (event.type === 'response.created') id = event.response.id;
      last = event.sequence_number;
    }
  };
  const cut = t.rejects(follow(), 'the stream breaks off');
  for (const name of ['behind', 'shown']) {
    await eventually(() => read(name) === 'a' || undefined, `the command of ${name} runs`);
  }
  first.child.kill('SIGKILL');
  await first.ended;
  await cut;

  await start(t, at);
  const numbers: number[] = [];
  let shown: OpenAI.Responses.Response | undefined;
  for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: last })) {
    numbers.push(event.sequence_number);
    if (event.type === 'response.completed') shown = event.response;
  }
  t.ok(numbers.every((number, index) => number > last && (index === 0 || number === (numbers[index - 1] ?? 0) + 1)));
  t.match(shown, { id, status: 'completed', x_agent: { steps: [{ tool: 'Exec' }] } });
  t.match(await client.responses.retrieve(id), { ...shown });
  for await (const _ of await client.responses.retrieve(behind.id, { stream: true }));
  t.match(await client.responses.retrieve(behind.id), { status: 'completed', x_agent: { steps: [{ tool: 'Exec' }] } });
  for (const name of ['behind', 'shown']) t.equal(read(name), 'a', `${name} ran once`);
});
