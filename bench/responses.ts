import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type AgentServer, startAgentServer } from './agent-server.ts';
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

/** Starts a model whose answer is the call that the prompt names, then one word. */
async function askingModel() {
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
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { url, close: () => server.close() };
}

/** Milliseconds from the start of a call until a client receives its question or approval, in alternation. */
async function askedMs(server: AgentServer, count: number): Promise<readonly (readonly number[])[]> {
  const client = await RpcClient.open(server.url);
  try {
    const times = asks.map((): number[] => []);
    const threads: string[] = [];
    for (const _ of asks) {
      const { thread } = (await client.call('thread/start', {})) as { thread: { id: string } };
      await client.call('thread/subscribe', { threadId: thread.id });
      threads.push(thread.id);
    }
    for (let round = 0; round < count; round += 1) {
      for (const [index, { name, asked, answer }] of asks.entries()) {
        const begun = client.next('item/started', 'toolCall').then(() => performance.now());
        const waiting = client.next(asked);
        const ended = client.next('turn/completed');
        await client.call('turn/start', { threadId: threads[index], input: [{ type: 'text', text: name }] });
        const { requestId } = (await waiting) as { requestId: string };
        times[index]?.push(performance.now() - (await begun));
        const [method, params] = answer(requestId);
        await client.call(method, params);
        await ended;
      }
    }
    return times;
  } finally {
    client.close();
  }
}

async function measureQuestions(count: number) {
  const model = await askingModel();
  const config = { EndPoint: model.url, ApiKey: 'bench', Model: 'm' };
  const server = await startAgentServer({ config, core: 0 });
  try {
    // Ignores the first measurements, during which the code is compiled.
    const times = (await askedMs(server, count + 20)).map((each) => each.slice(20));
    const [asking = Number.NaN, approving = Number.NaN] = times.map((each) => quantile(each, 0.5));
    const table: Table = {
      title: 'From the start of a call until a client can show its question, in alternation: milliseconds',
      columns: ['call', 'times', 'p50', 'p99'],
      rows: times.map((each, index) => [
        asks[index]?.name ?? '',
        each.length,
        quantile(each, 0.5),
        quantile(each, 0.99),
      ]),
    };
    return { table, p50: asking, ratio: asking / approving };
  } finally {
    await server.stop();
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
        { what: 'from the call of a question to its client, p50', measured: asked.p50, atMost: 5, unit: ' ms' },
        { what: 'the same, × an approval', measured: asked.ratio, atMost: 1.2 },
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
