/** JSON-RPC on standard input and output: `oratorio app-server --stdio` in a process of its own, and the reader by itself. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { defaults, rpcErrors } from '../../src/protocol/index.ts';
import { says } from '../agent/helpers.ts';
import { program, programEnvironment } from '../programs.ts';
import { Client, eventually, lockFile, type Message, makeWorkspace, serving, startServer, words } from './harness.ts';

const entry = program('src/cli/main.ts');
const introduction = { clientInfo: { name: 'test', version: '1' } };

/** A client at the other end of two streams. */
class LineClient {
  readonly messages: Message[] = [];
  /** Lines that are not JSON. */
  readonly noise: string[] = [];
  readonly #input: Writable;
  #rest = '';
  #nextId = 1;

  constructor(input: Writable, output: Readable) {
    this.#input = input;
    // The server may have gone.
    input.on('error', () => undefined);
    output.setEncoding('utf8').on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#take(line);
    });
  }

  /** Sends a message; a string is sent unchanged. */
  send(message: unknown): void {
    this.#input.write(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`);
  }

  async call(method: string, params: unknown = {}): Promise<Message> {
    const id = this.#nextId++;
    this.send({ jsonrpc: '2.0', id, method, params });
    const answer = await this.until((message) => message.id === id && message.method === undefined, method);
    if (answer.error) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  }

  until(fits: (message: Message) => boolean, what: string): Promise<Message> {
    return eventually(() => this.messages.find(fits), what);
  }

  async introduce(): Promise<void> {
    await this.call('initialize', introduction);
    this.send({ jsonrpc: '2.0', method: 'initialized' });
  }

  end(): void {
    this.#input.end();
  }

  #take(line: string): void {
    try {
      this.messages.push(JSON.parse(line));
    } catch {
      this.noise.push(line);
    }
  }
}

interface Run {
  readonly child: ChildProcessWithoutNullStreams;
  readonly path: string;
  readonly stderr: () => string;
  readonly exited: Promise<number | NodeJS.Signals>;
}

/** @param config of the user */
function spawnStdio(t: Test, config: unknown = {}): Run {
  const { path, home } = makeWorkspace(t);
  writeFileSync(join(home, 'config.json'), JSON.stringify(config));
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', entry, 'app-server', '--stdio', '--workspace', path],
    {
      cwd: home,
      env: { ...programEnvironment, HOME: home, ORATORIO_HOME: home, ORATORIO_LOG: 'debug' },
      stdio: 'pipe',
    },
  );
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined);
  // Unlike `exit`, `close` follows the last output.
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return { child, path, stderr: () => stderr, exited };
}

t.test(
  'a session runs on standard input and output with logs on standard error, and ends with its input',
  async (t) => {
    const { child, path, stderr, exited } = spawnStdio(t);
    const client = new LineClient(child.stdin, child.stdout);
    await client.introduce();
    const { thread } = await client.call('thread/start');
    await client.call('turn/start', { threadId: thread.id, input: words('run: echo out > a.txt; cat a.txt') });
    const { id, params } = await client.until(({ method }) => method === 'item/approval/request', 'the approval');
    t.match(params, { tool: 'Exec', threadId: thread.id });
    client.send({ jsonrpc: '2.0', id, result: { decision: 'accept' } });
    const { params: end } = await client.until(({ method }) => method === 'turn/completed', 'the end of the turn');
    t.match(
      end.turn.items.find(({ type }: Message) => type === 'commandExecution'),
      { output: 'out\n', exitCode: 0 },
    );
    t.equal(readFileSync(join(path, 'a.txt'), 'utf8'), 'out\n');
    t.ok(existsSync(lockFile(path)), 'it serves its WebSocket too');
    client.end();
    t.equal(await exited, 0);
    t.notOk(existsSync(lockFile(path)));
    t.same(client.noise, []);
    t.same(
      client.messages.filter(({ jsonrpc }) => jsonrpc !== '2.0'),
      [],
    );
    t.match(stderr(), /"msg":"serving".*"msg":"stopping","signal":"end of input"/s);
    t.match(stderr(), /Serving \S+ at http/);
  },
);

t.test('the end of input answers the last request and ends running turns and commands', async (t) => {
  // In a sandbox the command would see another number of its process.
  const { child, path, exited } = spawnStdio(t, { Tools: { Shell: { Sandbox: 'off' } } });
  const client = new LineClient(child.stdin, child.stdout);
  await client.introduce();
  const { thread } = await client.call('thread/start', { config: { approvalPolicy: 'autoApprove' } });
  await client.call('turn/start', { threadId: thread.id, input: words('run: echo $$ > pid; exec sleep 600') });
  await client.until(({ method }) => method === 'item/started', 'the command');
  const pid = await eventually(() => {
    const file = join(path, 'pid');
    return existsSync(file) && readFileSync(file, 'utf8').endsWith('\n')
      ? Number(readFileSync(file, 'utf8'))
      : undefined;
  }, 'the command runs');
  client.send(JSON.stringify({ jsonrpc: '2.0', id: 'last', method: 'thread/list', params: {} }));
  client.end();
  await client.until((message) => message.id === 'last', 'the answer to the last question, whose line does not end');
  t.equal(await exited, 0);
  // The keeper's child stays a zombie until the system has reaped it.
  await eventually(() => !existsSync(`/proc/${pid}`) || undefined, 'the command has ended');
});

t.test('a client that never reads its answers ends the server', async (t) => {
  const { child, exited, stderr } = spawnStdio(t);
  child.stdout.pause();
  const ask = (id: number, method: string, params: unknown) =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  ask(0, 'initialize', introduction);
  ask(1, 'thread/start', { displayName: 'x'.repeat(1_048_576) });
  for (let id = 2; id < 40; id += 1) ask(id, 'thread/list', {});
  t.equal(await exited, 0);
  t.match(stderr(), /"msg":"stopping"/);
});

t.test('the server ends when the client closes its output', async (t) => {
  const { child, exited } = spawnStdio(t);
  const client = new LineClient(child.stdin, child.stdout);
  await client.introduce();
  child.stdout.destroy();
  client.send({ jsonrpc: '2.0', id: 'x', method: 'thread/list', params: {} });
  t.equal(await exited, 0);
});

t.test('SIGTERM ends the server', async (t) => {
  const run = spawnStdio(t);
  await serving({ child: run.child, output: run.stderr, ended: run.exited }, run.path);
  run.child.kill('SIGTERM');
  t.equal(await run.exited, 0);
});

t.test('a malformed or too long line is answered, and the next lines are read', async (t) => {
  const { server } = await startServer(t, says('x'));
  const [input, output] = [new PassThrough(), new PassThrough()];
  const served = server.serveStdio(input, output);
  const client = new LineClient(input, output);
  await client.introduce();
  const long = 'x'.repeat(defaults.jsonRpc.frameBytes + 1);
  const lines: [string, number][] = [
    ['{\n', rpcErrors.parseError.code],
    ['hello\r\n', rpcErrors.parseError.code],
    ['[]\n', rpcErrors.invalidRequest.code],
    [`${long}\n`, rpcErrors.parseError.code],
    [`{"jsonrpc":"2.0","id":"${long}","method":"thread/list"}\n`, rpcErrors.parseError.code],
  ];
  for (const [line, code] of lines) {
    const before = client.messages.length;
    client.send(line);
    const answer = await client.until((message) => client.messages.indexOf(message) >= before, 'an answer');
    t.match(answer, { id: null, error: { code } });
    await client.call('thread/list');
  }
  client.send('\n\r\n   \n');
  await client.call('thread/list');
  const fits = defaults.jsonRpc.frameBytes - '{"jsonrpc":"2.0","id":"","method":"thread/list"}'.length;
  const id = 'y'.repeat(fits);
  client.send(`{"jsonrpc":"2.0","id":"${id}","method":"thread/list"}\n`);
  await client.until((message) => message.id === id, 'a line of exactly the limit');
  t.equal(client.messages.filter(({ error }) => error).length, lines.length);
  client.end();
  await served;
});

t.test('lines may arrive in any pieces', async (t) => {
  const { server } = await startServer(t, says('x'));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { minLength: 1, maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 }),
      fc.constantFrom('\n', '\r\n', '\n\n'),
      async (ids, sizes, end) => {
        const [input, output] = [new PassThrough(), new PassThrough()];
        const served = server.serveStdio(input, output);
        const client = new LineClient(input, output);
        const text = ids.map((id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'thread/list' })).join(end);
        const bytes = Buffer.from(text);
        for (let from = 0, round = 0; from < bytes.length; round += 1) {
          const size = sizes[round % sizes.length] ?? 1;
          input.write(bytes.subarray(from, from + size));
          from += size;
        }
        input.end();
        await served;
        await eventually(() => (client.messages.length >= ids.length ? true : undefined), 'every answer');
        return ids.every(
          (id, index) => client.messages[index]?.id === id && client.messages[index]?.error !== undefined,
        );
      },
    ),
    { numRuns: 200 },
  );
});

t.test('WebSocket and standard streams of one server serve the same threads', async (t) => {
  const { server } = await startServer(t, says('hello'));
  const [input, output] = [new PassThrough(), new PassThrough()];
  const served = server.serveStdio(input, output);
  const line = new LineClient(input, output);
  await line.introduce();
  const socket = await Client.ready(t, server.webSocketUrl);
  const { thread } = await socket.call('thread/start', {});
  await line.until(({ method }) => method === 'thread/started', 'the other client is notified');
  await line.call('thread/subscribe', { threadId: thread.id });
  await socket.call('turn/start', { threadId: thread.id, input: words('x') });
  await line.until(({ method }) => method === 'turn/completed', 'the turn');
  line.end();
  await served;
  await socket.call('thread/list');
});
