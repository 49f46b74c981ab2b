import { setTimeout as sleep } from 'node:timers/promises';
import { conversationOf, cutOf, pruned, requestsOf, summarise, TokenCount } from '../src/agent/context/index.ts';
import { ModelError, type ModelProvider } from '../src/agent/index.ts';
import { compileCacheDirectory } from '../src/hub/compile-cache.ts';
import type { Item } from '../src/protocol/index.ts';
import { ask, type Heard, tool, user } from '../test/providers/client.ts';
import { type Dialect, type Fake, fakeKey, startFake } from '../test/providers/fake.ts';
import { anthropicFake } from '../test/providers/fakes/anthropic.ts';
import { chatFake } from '../test/providers/fakes/chat.ts';
import { googleFake } from '../test/providers/fakes/google.ts';
import { responsesFake } from '../test/providers/fakes/responses.ts';
import { providerFor, type Subject, subjects } from '../test/providers/subjects.ts';
import { startAgentServer } from './agent-server.ts';
import { type Benchmark, type Check, type Context, median, type Result, type Table } from './harness.ts';
import { cpuMs, rssKiB } from './machine.ts';
import { RpcClient } from './rpc-client.ts';

/** Keeps fakes until the benchmark ends. */
class Stage {
  readonly #ends: (() => unknown)[] = [];

  fake(dialect: Dialect): Promise<Fake> {
    return startFake({ teardown: (end) => this.#ends.push(end as () => unknown) }, dialect);
  }

  async close(): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
  }
}

const plainRules = { name: 'plain', models: ['plain'] };
const kinds = {
  openai: { dialect: responsesFake, model: 'gpt-6-sol' },
  anthropic: { dialect: anthropicFake, model: 'claude-sonnet-5-5' },
  google: { dialect: googleFake, model: 'gemini-3.8-flash' },
} as const;
type Kind = keyof typeof kinds;

interface Loaded {
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly rssMiB: number;
}

/** First turn with a provider in a built agent server, less the turn before it with the lean one. */
async function loadOf(kind: Kind): Promise<Loaded> {
  const stage = new Stage();
  const { dialect, model } = kinds[kind];
  const [plain, native] = [await stage.fake(chatFake(plainRules)), await stage.fake(dialect())];
  const server = await startAgentServer({
    // The Hub passes the same directory.
    compileCache: compileCacheDirectory(process.env),
    config: {
      ...{ Provider: 'openai-compatible', EndPoint: plain.endPoint, ApiKey: fakeKey, Model: 'plain' },
      Providers: { native: { Kind: kind, EndPoint: native.endPoint, ApiKey: fakeKey } },
    },
  });
  try {
    const client = await RpcClient.open(server.url);
    const measured = async (name: string | undefined): Promise<Loaded> => {
      const threadId = await client.startThread(name === undefined ? {} : { model: name });
      await sleep(200);
      const before = { cpu: cpuMs(server.pid), rss: rssKiB(server.pid), at: performance.now() };
      const { status } = await client.turn(threadId, 'hello');
      const wallMs = performance.now() - before.at;
      if (status !== 'completed') throw new Error(`the turn with ${name} has ${status}`);
      await sleep(200);
      return {
        cpuMs: cpuMs(server.pid) - before.cpu,
        wallMs,
        rssMiB: (rssKiB(server.pid) - before.rss) / 1_024,
      };
    };
    for (let warm = 0; warm < 3; warm += 1) await measured(undefined);
    const usual = await measured(undefined);
    const first = await measured(`native/${model}`);
    client.close();
    return {
      cpuMs: first.cpuMs - usual.cpuMs,
      wallMs: first.wallMs - usual.wallMs,
      rssMiB: first.rssMiB - usual.rssMiB,
    };
  } finally {
    await server.stop();
    await stage.close();
  }
}

const events = 10_000;

/** An answer whose text comes in thousands of events. */
function longAnswer(dialect: Dialect): Dialect {
  return {
    ...dialect,
    isQuestion: (path) => dialect.isQuestion(path),
    answer(received) {
      const answer = dialect.answer(received);
      if (!('frames' in answer)) return answer;
      const at = answer.frames.findIndex((frame) => frame.includes('You said'));
      const frame = answer.frames[at];
      if (frame === undefined) throw new Error('the answer has no text');
      return { frames: answer.frames.flatMap((each, index) => (index === at ? Array(events).fill(each) : [each])) };
    },
  };
}

/** CPU time of this process for one long answer, without that of sending it, in milliseconds. */
async function parseMs(subject: Subject): Promise<number> {
  const stage = new Stage();
  const fake = await stage.fake(longAnswer(subject.dialect()));
  const provider: ModelProvider = await providerFor(fake, subject.settings);
  const one = async (): Promise<number> => {
    const began = process.cpuUsage();
    let chars = 0;
    await provider.stream(
      { messages: [user('hello')] },
      (event) => {
        if (event.type === 'text') chars += event.text.length;
      },
      new AbortController().signal,
    );
    const { user: own, system } = process.cpuUsage(began);
    if (chars < events * 'You said'.length) throw new Error(`an answer of ${chars} characters is not whole`);
    return (own + system) / 1_000;
  };
  for (let warm = 0; warm < 3; warm += 1) await one();
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) times.push(await one());
  provider.close();
  await stage.close();
  return median(times);
}

const at = '2026-01-01T00:00:00.000Z';

/** A history of about so many tokens: requests, calls with results, answers. */
function historyOf(tokens: number): Item[] {
  const items: Item[] = [];
  const result = 'a line of a file that was read, with some numbers 12345 in it\n'.repeat(40);
  let bytes = 0;
  for (let number = 0; bytes < tokens * 4; number += 1) {
    const own = { status: 'completed', createdAt: at, turnId: `turn_${Math.floor(number / 20)}` } as const;
    const callId = `call_${number}`;
    const text = 'It says what it should say, so the next file follows. '.repeat(4);
    items.push(
      { ...own, id: `u${number}`, type: 'userMessage', input: [{ type: 'text', text: `Read file ${number}.` }] },
      {
        ...{ ...own, id: `c${number}`, type: 'toolCall', callId, tool: 'ReadFile', source: 'builtin' },
        arguments: `{"path":"src/file-${number}.ts"}`,
      } as Item,
      {
        ...{ ...own, id: `r${number}`, type: 'toolResult', callId, tool: 'ReadFile', outcome: 'completed' },
        text: result,
      } as Item,
      { ...own, id: `a${number}`, type: 'agentMessage', text } as Item,
    );
    bytes += result.length + text.length + 60;
  }
  return items;
}

const instant: ModelProvider = {
  name: 'instant',
  model: 'instant',
  async stream(_, emit) {
    emit({ type: 'text', text: 'Everything was read.' });
    emit({ type: 'finish', reason: 'stop' });
  },
  listModels: async () => [],
  close: () => undefined,
};

/** CPU time of compacting a history, but for the answer of the model, in milliseconds. */
async function compactionMs(tokens: number): Promise<number> {
  const items = historyOf(tokens);
  const began = process.cpuUsage();
  const turns = [{ items }];
  const before = conversationOf(undefined, turns);
  const count = new TokenCount();
  count.estimate(before, 0);
  pruned(before, { keepBytes: tokens, maxResultBytes: tokens, minBytes: tokens });
  const cut = cutOf(items, tokens);
  const summary = await summarise({
    ...{ provider: instant, model: undefined, items: items.slice(0, cut), earlier: undefined },
    ...{ transcriptBytes: tokens * 1.6, signal: new AbortController().signal, onUsed: () => undefined },
  });
  const requests = requestsOf(items.slice(0, cut), [], () => false, 80_000);
  const after = conversationOf({ throughTurnId: 'x', summary, requests, at }, [{ items: items.slice(cut) }]);
  count.estimate(after, 0);
  const { user: own, system } = process.cpuUsage(began);
  return (own + system) / 1_000;
}

/** Breaks an answer after every one of its bytes, both ways. Every break must be a failure that may be retried, or the whole answer. */
async function cutsOf(subject: Subject, step: number): Promise<{ readonly cuts: number; readonly wrong: number }> {
  const stage = new Stage();
  const fake = await stage.fake(subject.dialect());
  const provider = await providerFor(fake, subject.settings);
  const question = { messages: [user('tool loop 1')], tools: [tool] };
  const said = ({ text, calls, finish }: Heard) => JSON.stringify([text, calls, finish]);
  const expected = said(await ask(provider, question));
  const whole = fake.answerBytes;
  let [cuts, wrong] = [0, 0];
  for (let byte = 0; byte < whole; byte += step) {
    for (const fault of [{ cutAfterBytes: byte }, { endAfterBytes: byte }]) {
      fake.faults.push(fault);
      cuts += 1;
      // After the reason for its end an answer is whole.
      const isRight = await ask(provider, question).then(
        (heard) => said(heard) === expected,
        (error: unknown) => error instanceof ModelError && error.isRetryable,
      );
      if (!isRight) wrong += 1;
    }
  }
  provider.close();
  await stage.close();
  return { cuts, wrong };
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const loads = new Map<Kind, Loaded[]>();
  // The first start of each fills the cache of compiled code.
  for (const kind of Object.keys(kinds) as Kind[]) await loadOf(kind);
  for (let round = 0; round < rounds; round += 1) {
    for (const kind of Object.keys(kinds) as Kind[]) loads.set(kind, [...(loads.get(kind) ?? []), await loadOf(kind)]);
  }
  const middle = (kind: Kind, of: (load: Loaded) => number) => median((loads.get(kind) ?? []).map(of));
  const loadTable: Table = {
    title: 'First turn with a provider, less a turn of the compatible path, in a built agent server',
    columns: ['', 'CPU ms', 'wall ms', 'RSS MiB'],
    rows: (Object.keys(kinds) as Kind[]).map((kind) => [
      kind,
      middle(kind, (load) => load.cpuMs),
      middle(kind, (load) => load.wallMs),
      middle(kind, (load) => load.rssMiB),
    ]),
  };
  const wires = ['chat completions: deepseek', 'OpenAI Responses', 'Anthropic, adaptive thinking', 'Gemini 3'];
  const chosen = wires.map((name) => subjects.find((subject) => subject.name === name) as Subject);
  const times = new Map<string, number>();
  for (const subject of chosen) times.set(subject.name, await parseMs(subject));
  const rate = (name: string) => events / ((times.get(name) ?? Number.NaN) / 1_000);
  const leanRate = rate(wires[0] ?? '');
  const parseTable: Table = {
    title: `An answer of ${events} events, CPU time of client and stand-in in one process`,
    columns: ['', 'ms', 'events/s', '× compatible path'],
    rows: wires.map((name) => [name, times.get(name) ?? Number.NaN, rate(name), rate(name) / leanRate]),
  };
  const compactions: number[] = [];
  for (let round = 0; round < 9; round += 1) compactions.push(await compactionMs(200_000));
  const cuts: (readonly [string, number, number])[] = [];
  for (const subject of subjects) {
    const found = await cutsOf(subject, quick ? 101 : 1);
    cuts.push([subject.name, found.cuts, found.wrong]);
  }
  const checks: Check[] = [
    ...(Object.keys(kinds) as Kind[]).flatMap((kind) => [
      { what: `loading ${kind}`, measured: middle(kind, (load) => load.wallMs), atMost: 120, unit: ' ms' },
      { what: `loading ${kind}, memory`, measured: middle(kind, (load) => load.rssMiB), atMost: 25, unit: ' MiB' },
    ]),
    ...wires
      .slice(1, 3)
      .map((name) => ({ what: `events of ${name} × compatible path`, measured: rate(name) / leanRate, atLeast: 0.5 })),
    { what: 'compaction of 200k tokens, own CPU', measured: median(compactions), atMost: 50, unit: ' ms' },
    {
      what: 'broken answers that did not fail as they should',
      measured: cuts.reduce((sum, [, , wrong]) => sum + wrong, 0),
      atMost: 0,
    },
  ];
  return {
    tables: [
      loadTable,
      parseTable,
      {
        title: 'Compaction of a history of 200,000 tokens',
        columns: ['', 'CPU ms'],
        rows: [['our part', median(compactions)]],
      },
      {
        title: 'Answers broken after every byte, by a cut and by an early end',
        columns: ['', 'breaks', 'wrong'],
        rows: cuts,
      },
    ],
    checks,
    notes: [
      'The libraries of the other wires validate each event with a schema. For Responses and Messages, pieces of one text that arrive together are joined before; for Gemini they are not. A model sends 50 to 500 events a second.',
    ],
  };
}

export const models: Benchmark = { name: 'models', title: 'Model providers', run };
