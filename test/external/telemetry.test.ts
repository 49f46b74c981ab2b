/** Telemetry that an agent exports is in the trace and the usage of its turn: over the real server and a real process. */
import t, { type Test } from 'tap';
import { Client, eventually } from '../appserver/harness.ts';
import { type Body, type Scene, scene } from '../dashboard/harness.ts';
import { stubAgent, Talk, textOf } from './talk.ts';

/** The stub, exporting as gemini does. */
async function begin(t: Test, env: Readonly<Record<string, string>> = {}) {
  const { Agent } = stubAgent('', 'gemini');
  const served = await scene(t, { Agent: { ...Agent, Env: { ...Agent.Env, ...env } } });
  const talk = new Talk(await Client.ready(t, served.server.webSocketUrl));
  talk.threadId = (await talk.client.call('thread/start')).thread.id;
  return { ...served, talk };
}

const request = (more: Readonly<Record<string, string | number>> = {}) =>
  JSON.stringify({ model: 'flash', duration_ms: 40, input_token_count: 7, output_token_count: 3, ...more });

/** Requests in the trace, as `GET …/events` returns them, oldest first. */
async function requestsOf({ ask }: Pick<Scene, 'ask'>, { threadId }: Talk): Promise<Body[]> {
  const { body } = await ask(`/DashBoard/api/sessions/${threadId}/events?limit=200`);
  const used = body.events.filter(({ type }: Body) => type === 'tokens.used');
  return used.sort((one: Body, other: Body) => one.id - other.id);
}

t.test('an exported request is in the trace of its turn, and counts where ACP counts nothing', async (t) => {
  const { talk, ...served } = await begin(t);
  const turn = await talk.say('uncounted', `export ${request({ thoughts_token_count: 2 })}`, `export ${request()}`);
  t.equal(textOf(turn), 'exported 200exported 200');
  t.match(turn.tokenUsage, { inputTokens: 14, outputTokens: 8, reasoningTokens: 2, totalTokens: 22 });
  const [first, second, ...more] = await requestsOf(served, talk);
  t.match(first, {
    turnId: turn.id,
    durationMs: 40,
    data: { provider: 'gemini', model: 'flash', inputTokens: 7, outputTokens: 5, reasoningTokens: 2 },
  });
  t.match(second, { turnId: turn.id, data: { inputTokens: 7, outputTokens: 3 } });
  t.same(more, []);
});

t.test('no token is counted twice where ACP counts as well, and a late export belongs to its turn', async (t) => {
  const { talk, ...served } = await begin(t);
  const first = await talk.say(`export ${request()}`, `exportlate ${request({ input_token_count: 20 })}`);
  t.match(first.tokenUsage, { inputTokens: 100, outputTokens: 10 }, 'that of ACP');
  await eventually(async () => (await requestsOf(served, talk))[1], 'the late export is in the trace');
  for (const word of ['second', 'third']) t.equal(textOf(await talk.say(`say ${word}`)), word);
  const requests = (await requestsOf(served, talk)).filter(({ turnId }) => turnId === first.id);
  t.match(
    requests.map(({ data }) => [data.model, data.inputTokens, data.outputTokens]),
    [
      ['flash', 7, 3],
      ['flash', 20, 3],
      [undefined, 73, 4],
    ],
    'the rest of what ACP counted is a request of its own',
  );
  await served.server.close();
});

t.test('the first export of a process belongs to a turn that has ended', async (t) => {
  const { talk, ...served } = await begin(t);
  const turn = await talk.say('say hello', `exportlate ${request()}`);
  const exported = await eventually(async () => (await requestsOf(served, talk))[0], 'the export is in the trace');
  t.match(exported, { turnId: turn.id, data: { model: 'flash', inputTokens: 7 } });
});

t.test('a request of no turn is dropped, and the end of the agent ends its port', async (t) => {
  const { talk, log, server } = await begin(t);
  const before = Date.now() - 3_600_000;
  const turn = await talk.say(`export ${request({ at: before })}`, 'address', 'telemetry');
  t.match(textOf(turn), /http:\/\/127\.0\.0\.1:\d+\//);
  t.notMatch(textOf(turn), /127\.0\.0\.1:\d+\/[\w-]{32}/, 'the key of the receiver is taken out of the conversation');
  t.match(textOf(turn), /"GEMINI_TELEMETRY_LOG_PROMPTS"/);
  t.notMatch(textOf(turn), /OTEL_/, 'programs that the agent starts are not asked to export');
  await server.close();
  t.match(log.join(''), /exported requests of no turn.*"dropped":1/);
});

t.test('an agent that exports elsewhere is left alone', async (t) => {
  const { talk } = await begin(t, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  t.equal(textOf(await talk.say('telemetry')), '["OTEL_EXPORTER_OTLP_ENDPOINT"]');
});

t.test('tokens that qwen and gemini report beside the protocol are those of the turn', async (t) => {
  const { talk } = await Talk.begin(t);
  const counts = [
    { inputTokens: 5, outputTokens: 2 },
    { inputTokens: 6, outputTokens: 3, thoughtTokens: 1 },
    { inputTokens: -1 },
  ];
  const first = await talk.say(...counts.map((count) => `counted ${JSON.stringify(count)}`));
  t.match(first.tokenUsage, { inputTokens: 11, outputTokens: 5, reasoningTokens: 1, totalTokens: 16 });
  const quota = (input: number) =>
    `quota ${JSON.stringify({ token_count: { input_tokens: input, output_tokens: 4 } })}`;
  for (const input of [50, 60])
    t.match((await talk.say(quota(input))).tokenUsage, { inputTokens: input, outputTokens: 4 });
  t.equal((await talk.say('uncounted', quota(0.5))).tokenUsage, undefined, 'another shape counts as absent');
});
