/**
 * An upstream that thinks no time at all: chat completions on bare uWebSockets.js. The model asked for says which answer it
 * gives (`mock-answers.ts`).
 */
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js';
import {
  floodModels,
  type MockAnswer,
  type MockModel,
  mockAnswers,
  pieceOf,
  textOf,
  toolsModel,
  toolsText,
} from './mock-answers.ts';
import { announce } from './peer.ts';

const head = (model: string, object: string): string =>
  `{"id":"chatcmpl-mock0000000000000000000000","object":"${object}","created":1790000000,"model":"${model}","system_fingerprint":"fp_mock",`;
const usage = '"usage":{"prompt_tokens":12,"completion_tokens":16,"total_tokens":28}';

const chunkOf = (model: string, delta: string, finish: string): string =>
  `data: ${head(model, 'chat.completion.chunk')}"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]}\n\n`;

/** One answer, made once. */
interface Prepared extends MockAnswer {
  readonly role: string;
  readonly frames: readonly string[];
  readonly end: string;
  readonly usage: string;
  readonly whole: string;
}

function prepare(model: MockModel): Prepared {
  const answer = mockAnswers[model];
  const message = `{"role":"assistant","content":"${textOf(model)}","refusal":null}`;
  return {
    ...answer,
    role: chunkOf(model, '{"role":"assistant","content":""}', 'null'),
    frames: Array.from({ length: answer.chunks }, (_, index) =>
      chunkOf(model, `{"content":"${pieceOf(index)}"}`, 'null'),
    ),
    end: chunkOf(model, '{}', '"stop"'),
    usage: `data: ${head(model, 'chat.completion.chunk')}"choices":[],${usage}}\n\n`,
    whole: `${head(model, 'chat.completion')}"choices":[{"index":0,"message":${message},"logprobs":null,"finish_reason":"stop"}],${usage}}`,
  };
}

const answers = new Map<string, Prepared>(
  (Object.keys(mockAnswers) as MockModel[]).map((model) => [model, prepare(model)]),
);

interface Stream {
  readonly res: HttpResponse;
  readonly answer: Prepared;
  readonly last: string;
  next: number;
  dueAt: number;
}

const done = 'data: [DONE]\n\n';

/** Streams as fast as possible get a piece in every turn of the event loop, the others when it is due. */
const fast = new Set<Stream>();
const paced = new Set<Stream>();

function advance(stream: Stream): void {
  const { res, answer } = stream;
  const until = Math.min(stream.next + answer.atOnce, answer.chunks);
  let text = stream.next === 0 ? answer.role : '';
  for (; stream.next < until; stream.next += 1) text += answer.frames[stream.next] ?? '';
  stream.dueAt += answer.paceMs;
  if (stream.next < answer.chunks) {
    res.cork(() => res.write(text));
    return;
  }
  (answer.paceMs > 0 ? paced : fast).delete(stream);
  res.cork(() => res.end(text + stream.last));
}

let isTurning = false;
function turn(): void {
  for (const stream of fast) advance(stream);
  isTurning = fast.size > 0;
  if (isTurning) setImmediate(turn);
}

setInterval(() => {
  const now = performance.now();
  for (const stream of paced) if (stream.dueAt <= now) advance(stream);
}, 1);

function begin(res: HttpResponse, answer: Prepared, wantsUsage: boolean): void {
  const last = `${answer.end}${wantsUsage ? answer.usage : ''}${done}`;
  const stream: Stream = { res, answer, last, next: 0, dueAt: performance.now() };
  res.cork(() => res.writeHeader('content-type', 'text/event-stream'));
  (answer.paceMs > 0 ? paced : fast).add(stream);
  res.onAborted(() => {
    fast.delete(stream);
    paced.delete(stream);
  });
  advance(stream);
  if (isTurning || fast.size === 0) return;
  isTurning = true;
  setImmediate(turn);
}

const toolCalls = [
  { name: 'ReadFile', arguments: JSON.stringify({ path: 'notes.txt' }) },
  { name: 'WriteFile', arguments: JSON.stringify({ path: 'report.txt', content: 'Everything was read.\n' }) },
];

interface Message {
  readonly role: string;
}

/** One call per answer until all have been made in this turn. */
function answerWithTools(res: HttpResponse, body: string): void {
  const { messages } = JSON.parse(body) as { readonly messages: readonly Message[] };
  const made = messages.length - 1 - messages.findLastIndex(({ role }) => role === 'user');
  const call = toolCalls[Math.floor(made / 2)];
  const frames = call
    ? [
        chunkOf(
          toolsModel,
          JSON.stringify({ tool_calls: [{ index: 0, id: `call_${made}`, type: 'function', function: call }] }),
          'null',
        ),
        chunkOf(toolsModel, '{}', '"tool_calls"'),
      ]
    : [chunkOf(toolsModel, JSON.stringify({ content: toolsText }), 'null'), chunkOf(toolsModel, '{}', '"stop"')];
  res.cork(() => res.writeHeader('content-type', 'text/event-stream').end(frames.join('') + done));
}

const floods = new Map<string, Buffer>();

function floodOf(model: string): Buffer {
  const call = (index: number) => ({ index, id: `call_${index}`, type: 'function', function: toolCalls[0] });
  const frames =
    model === 'flood-text'
      ? Array.from({ length: 20_000 }, () => chunkOf(model, `{"content":"${'x'.repeat(2_000)}"}`, 'null'))
      : Array.from({ length: 50_000 }, (_, index) =>
          chunkOf(model, JSON.stringify({ tool_calls: [call(index)] }), 'null'),
        );
  const flood = Buffer.from(frames.join('') + chunkOf(model, '{}', '"stop"') + done);
  floods.set(model, flood);
  return flood;
}

function answer(res: HttpResponse, body: string): void {
  const model = /"model":\s*"([^"]*)"/.exec(body)?.[1] ?? '';
  const prepared = answers.get(model);
  const flood = floodModels.some((name) => name === model) ? (floods.get(model) ?? floodOf(model)) : undefined;
  if (flood) res.cork(() => res.writeHeader('content-type', 'text/event-stream').end(flood));
  else if (model === toolsModel) answerWithTools(res, body);
  else if (!prepared) {
    res.cork(() => res.writeStatus('404 Not Found').end('{"error":{"message":"no such model"}}'));
  } else if (/"stream":\s*true/.test(body)) begin(res, prepared, /"include_usage":\s*true/.test(body));
  else res.cork(() => res.writeHeader('content-type', 'application/json').end(prepared.whole));
}

const app = App();
app.post('/v1/chat/completions', (res) => {
  let body = '';
  let isGone = false;
  res.onAborted(() => {
    isGone = true;
  });
  res.onData((bytes, isLast) => {
    body += Buffer.from(bytes).toString('latin1');
    if (isLast && !isGone) answer(res, body);
  });
});
const models = [...answers.keys(), toolsModel, ...floodModels].map((id) => ({
  id,
  object: 'model',
  created: 0,
  owned_by: 'mock',
}));
app.get('/v1/models', (res) => {
  res.writeHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data: models }));
});
app.listen('127.0.0.1', 0, (token) => {
  if (token === false) throw new Error('cannot listen');
  announce({ port: us_socket_local_port(token as never) });
});
