import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { HubClient } from '../src/client/index.ts';
import { type ChatFigures, type ChatLoad, loadChat } from './chat-load.ts';
import { type ChatServer, oratorioApi } from './chat-servers.ts';
import {
  type Benchmark,
  type Context,
  interleaved,
  median,
  quantile,
  type Result,
  startPeer,
  type Table,
} from './harness.ts';
import { type Hub, makePlace, startHub } from './hub.ts';
import { RpcClient } from './rpc-client.ts';
import { nodePeer } from './servers.ts';

const wires = [
  { name: 'chat completions', isResponse: false },
  { name: 'responses, store: false', isResponse: true },
] as const;

/** Requests and chunks per second of both interfaces of one server, in alternation. */
async function compareWires(server: ChatServer, upstreamPid: number, { quick, rounds }: Context) {
  const times = { warmMs: 1_000, measureMs: quick ? 2_000 : 3_000, upstreamPid };
  const loads: readonly Omit<ChatLoad, 'isResponse'>[] = [
    { ...times, model: 'instant', isStream: false, connections: 32 },
    { ...times, model: 'burst', isStream: true, connections: 100 },
  ];
  const measure = async (wire: (typeof wires)[number]) => {
    const figures: ChatFigures[] = [];
    for (const load of loads) figures.push(await loadChat(server, { ...load, isResponse: wire.isResponse }));
    return figures;
  };
  // Warms up the compiler with the measured code.
  for (const wire of wires) await measure(wire);
  const [chat, responses] = wires;
  const found = await interleaved(wires, rounds, measure);
  const of = (wire: (typeof wires)[number], load: 0 | 1, key: 'answersPerSecond' | 'chunksPerSecond') =>
    (found.get(wire) ?? []).map((figures) => figures[load]?.[key] ?? Number.NaN);
  const ratio = (load: 0 | 1, key: 'answersPerSecond' | 'chunksPerSecond') =>
    median(of(responses, load, key).map((own, round) => own / (of(chat, load, key)[round] ?? Number.NaN)));
  const table: Table = {
    title: 'Both interfaces of one agent server, in turn',
    columns: ['interface', 'requests/s at 32', 'chunks/s of 100 streams'],
    rows: wires.map((wire) => [
      wire.name,
      median(of(wire, 0, 'answersPerSecond')),
      median(of(wire, 1, 'chunksPerSecond')),
    ]),
  };
  return { table, requests: ratio(0, 'answersPerSecond'), chunks: ratio(1, 'chunksPerSecond') };
}

const questions = [
  {
    ...{ header: 'Store', question: 'Which store?' },
    options: [
      { label: 'SQLite', description: 'One file.' },
      { label: 'Postgres', description: 'A server.' },
    ],
  },
];

/** Calls of the model that wait for a user. */
const asks = [
  {
    ...{ name: 'question', call: { name: 'AskUser', arguments: JSON.stringify({ questions }) } },
    asked: 'question/asked',
    answer: (requestId: string) =>
      ['question/answer', { requestId, action: 'accept', content: { Store: 'SQLite' } }] as const,
  },
  {
    ...{ name: 'approval', call: { name: 'WriteFile', arguments: '{"path":"a.txt","content":"x"}' } },
    asked: 'item/approval/request',
    answer: (requestId: string) => ['approval/respond', { requestId, decision: 'decline' }] as const,
  },
] as const;

interface AskingModel {
  readonly url: string;
  /** Time of the last call, in milliseconds. */
  readonly calledAt: () => number;
  readonly close: () => void;
}

/** Starts a model whose answer is the call that the prompt names, then one word. */
async function askingModel(): Promise<AskingModel> {
  let calledAt = Number.NaN;
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      const { messages = [] } = JSON.parse(body || '{}') as { messages?: { role: string; content?: unknown }[] };
      const isAnswered = messages.at(-1)?.role === 'tool';
      const prompt = JSON.stringify(messages.at(-1)?.content);
      const { call } = asks.find(({ name }) => prompt?.includes(name)) ?? asks[0];
      const choice = isAnswered
        ? { delta: { role: 'assistant', content: 'Good.' }, finish_reason: 'stop' }
        : {
            delta: { role: 'assistant', tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: call }] },
            finish_reason: 'tool_calls',
          };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\ndata: [DONE]\n\n`);
      if (!isAnswered) calledAt = performance.now();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { url, calledAt: () => calledAt, close: () => server.close() };
}

/** Resolves with the time at which the inbox of the page has the next request. */
type NextInInbox = () => Promise<number>;

/** Reads the inbox as the page does: the events of the Hub, and the list after each new request. */
async function openInbox(client: HubClient, hub: Hub): Promise<NextInInbox> {
  const opened = Promise.withResolvers<void>();
  const events = client.events({ onOpen: opened.resolve });
  let event = events.next();
  await Promise.race([opened.promise, event]);
  return async () => {
    for (;;) {
      const { value, done } = await event;
      if (done) throw new Error('the stream of the Hub ended');
      event = events.next();
      if (value.kind === 'inbox.added') break;
    }
    await hub.request('GET', '/v1/fleet/inbox');
    return performance.now();
  };
}

const receivers = ['client', 'inbox of the page'] as const;

interface AskedTime {
  readonly ask: string;
  readonly receiver: (typeof receivers)[number];
  readonly ms: number[];
}

interface Asking {
  /** Address of the agent server. */
  readonly url: string;
  readonly model: AskingModel;
  readonly nextInInbox: NextInInbox;
}

/** Milliseconds from a call of the model until each receiver has its question or approval, in alternation. */
async function askedMs({ url, model, nextInInbox }: Asking, count: number): Promise<readonly AskedTime[]> {
  const client = await RpcClient.open(url);
  try {
    const threads = await Promise.all(asks.map(() => client.startThread({})));
    for (const threadId of threads) await client.call('thread/subscribe', { threadId });
    const times = asks.map(({ name }) => receivers.map((receiver): AskedTime => ({ ask: name, receiver, ms: [] })));
    // Ignores the first measurements, during which the code is compiled.
    for (let round = -20; round < count; round += 1) {
      for (const [index, { name, asked, answer }] of asks.entries()) {
        const waiting = client.next(asked).then((params) => ({ params, at: performance.now() }));
        const inPage = nextInInbox();
        const ended = client.next('turn/completed');
        await client.call('turn/start', { threadId: threads[index], input: [{ type: 'text', text: name }] });
        const { params, at } = await waiting;
        for (const [place, end] of [at, await inPage].entries()) {
          if (round >= 0) times[index]?.[place]?.ms.push(end - model.calledAt());
        }
        const [method, answered] = answer((params as { requestId: string }).requestId);
        await client.call(method, answered);
        await ended;
      }
    }
    return times.flat();
  } finally {
    client.close();
  }
}

async function measureQuestions(count: number) {
  const model = await askingModel();
  const place = makePlace();
  mkdirSync(place.home, { recursive: true, mode: 0o700 });
  const config = { EndPoint: model.url, ApiKey: 'bench', Model: 'm' };
  writeFileSync(join(place.home, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const hub = await startHub(place);
  try {
    const client = new HubClient({ apiBaseUrl: `http://127.0.0.1:${hub.port}`, token: hub.token });
    const { endpoints } = await client.ensure({ workspacePath: place.workspace('asking') });
    const nextInInbox = await openInbox(client, hub);
    const times = await askedMs({ url: endpoints['appServerWebSocket'] ?? '', model, nextInInbox }, count);
    const table: Table = {
      title: 'From a call of the model until its question or approval can be shown, in alternation: milliseconds',
      columns: ['call', 'receiver', 'times', 'p50', 'p99'],
      rows: times.map(({ ask, receiver, ms }) => [ask, receiver, ms.length, quantile(ms, 0.5), quantile(ms, 0.99)]),
    };
    const p50 = (ask: string, receiver: AskedTime['receiver']): number =>
      quantile(times.find((each) => each.ask === ask && each.receiver === receiver)?.ms ?? [], 0.5);
    return { table, p50 };
  } finally {
    await hub.stop();
    place.remove();
    model.close();
  }
}

async function run(context: Context): Promise<Result> {
  const upstream = await startPeer({ ...nodePeer('mock-upstream.ts'), core: 1 });
  const server = await oratorioApi(`http://127.0.0.1:${upstream.port}`);
  try {
    const { table, requests, chunks } = await compareWires(server, upstream.pid, context);
    const asked = await measureQuestions(context.quick ? 100 : 300);
    return {
      tables: [table, asked.table],
      checks: [
        { what: 'requests, × chat completions', measured: requests, atLeast: 0.9 },
        { what: 'chunks, × chat completions', measured: chunks, atLeast: 0.9 },
        ...receivers.flatMap((receiver) => {
          const [question, approval] = [asked.p50('question', receiver), asked.p50('approval', receiver)];
          return [
            { what: `question until the ${receiver} has it, p50`, measured: question, atMost: 5, unit: ' ms' },
            { what: `question until the ${receiver} has it, × approval`, measured: question / approval, atMost: 1.2 },
          ];
        }),
      ],
    };
  } finally {
    await server.stop();
    await upstream.stop();
  }
}

export const responses: Benchmark = {
  name: 'responses',
  title: 'Responses API and questions through the agent server',
  run,
};
