import t from 'tap';
import type { ModelEvent } from '../../../src/agent/index.ts';
import { defaults } from '../../../src/protocol/index.ts';
import { answers, call, say, scripted, service, settings, talk, tool } from '../helpers.ts';

const patient = { ...settings, maxRetries: 1 };
const finish = (reason: 'stop' | 'length' | 'toolCalls' | 'contentFilter'): ModelEvent => ({ type: 'finish', reason });
const look = tool({ name: 'ReadFile' });

async function run(provider: ReturnType<typeof answers>, options: Parameters<typeof service>[1] = {}) {
  const { runtime, bugs } = service(provider, { tools: () => [look], settings: patient, ...options });
  const { turn, ear } = await talk(runtime, runtime.threads.start({}).thread.id, 'go');
  t.same(bugs, []);
  const notices = turn.items.flatMap((item) => (item.type === 'systemNotice' ? [item.kind] : []));
  const results = turn.items.flatMap((item) => (item.type === 'toolResult' ? [item.text] : []));
  return { turn, ear, notices, results, requests: provider.requests };
}

t.test('an answer without text and call is asked for again, then fails the turn', async (t) => {
  for (const empty of [
    [],
    [finish('toolCalls')],
    [{ type: 'thinking' as const, text: 'hm' }],
    [say(' \n')],
    [say('\u200b\u2060\ufeff')],
    [say('\0')],
    [say('<|im_end|>')],
    [say('\n</s>')],
    [say('<end_of_turn>\n')],
    [finish('length')],
  ]) {
    const { turn, requests } = await run(answers(empty));
    t.match(turn, { status: 'failed', error: { code: 'upstreamEmptyAnswer' } });
    t.equal(requests.length, 2);
  }
});

t.test('an empty answer is not sent back, and the next one counts', async (t) => {
  const { turn, requests } = await run(answers([], [say('Here I am.')]));
  t.equal(turn.status, 'completed');
  t.same(requests[1]?.messages, requests[0]?.messages);
});

t.test('an answer of one sign, or one that names the end of a template, is an answer', async (t) => {
  for (const text of ['…', '4', '👍', 'Write <|im_end|> at the end.', '</s> ends it'])
    t.equal((await run(answers([say(text)]))).turn.status, 'completed', text);
});

t.test('a filtered answer may be empty', async (t) => {
  const { turn, requests } = await run(answers([finish('contentFilter')]));
  t.match(turn, { status: 'completed', finishReason: 'contentFilter' });
  t.equal(requests.length, 1);
});

t.test('an announced call that never came is asked for again; its text stands in the end', async (t) => {
  const { turn, requests } = await run(answers([say('Let me see.'), finish('toolCalls')]));
  t.match(turn, { status: 'completed', finishReason: 'stop' });
  t.equal(requests.length, 2);
});

t.test('a turn whose calls were its result ends without text, with a notice', async (t) => {
  const { turn, notices, requests } = await run(answers([call('c1', 'ReadFile')], []));
  t.equal(turn.status, 'completed');
  t.equal(requests.length, 3, 'asked again once');
  t.equal(notices.at(-1), 'endedSilently');
});

t.test('a printed call gets one notice to the model, and one to the person about the tool parser', async (t) => {
  const printed = [say('<tool_call>\n{"name":"ReadFile","arguments":{}}\n</tool_call>')];
  const { turn, notices, requests } = await run(answers(printed, [say('Done.')]));
  t.equal(turn.status, 'completed');
  t.same(notices, ['callPrinted']);
  t.match(JSON.stringify(turn.items), '--jinja');
  t.match(requests[1]?.messages.at(-1), { role: 'user', content: [{ text: /printed a tool call as text/ }] });
  const stubborn = await run(answers(printed));
  t.equal(stubborn.requests.length, 2);
  const other = await run(answers([say('Use <tool_call> to call.')]));
  t.same([other.requests.length, other.notices], [1, []], 'an answer about the notation is an answer');
});

t.test('a call cut off at the output limit says so, and the third in a row ends the turn', async (t) => {
  for (const reason of ['length', 'stop'] as const) {
    let size = 0;
    const provider = scripted(async function* (request) {
      provider.requests.push(request);
      if (request.toolChoice === 'none') yield say('I could not write it.');
      else yield call(`c${size}`, 'ReadFile', `{"path":"big.txt","content":"${'x'.repeat(size)}`);
      size += 1;
      yield finish(reason);
    }) as ReturnType<typeof answers>;
    Object.assign(provider, { requests: [] });
    const { turn, results, notices, requests } = await run(provider, { settings: { ...patient } });
    t.match(turn, { status: 'completed', finishReason: 'length' });
    t.equal(requests.length, 4);
    t.match(results, Array(3).fill(/^Error: Cut off at the output limit/));
    t.equal(notices.at(-1), 'callLimitReached');
    t.match(JSON.stringify(turn.items), 'were cut off at');
  }
});

t.test('the limit of a cut call is named', async (t) => {
  const usage: ModelEvent = { type: 'usage', inputTokens: 1, outputTokens: 321 };
  const { results } = await run(answers([call('c1', 'ReadFile', '{"a":"'), usage, finish('length')], [say('ok')]));
  t.same(results, ['Error: Cut off at the output limit of 321 tokens; write it in parts.']);
});

t.test('a whole call at the output limit runs', async (t) => {
  const { results } = await run(answers([call('c1', 'ReadFile', {}), finish('length')], [say('ok')]));
  t.same(results, ['ReadFile ran']);
});

t.test('unknown tools with other names and arguments end the turn after sixteen calls', async (t) => {
  let number = 0;
  const provider = scripted(async function* (request) {
    provider.requests.push(request);
    number += 1;
    if (request.toolChoice === 'none') yield say('I have no tool.');
    else yield call(`c${number}`, `Nope${number}`, { number });
  }) as ReturnType<typeof answers>;
  Object.assign(provider, { requests: [] });
  const { requests } = await run(provider, { settings: { ...patient, maxToolCallRounds: 100 } });
  t.equal(requests.length, defaults.agent.stuckRepeats + 1);
});

t.test('other spellings of a tool and arguments encoded twice are understood', async (t) => {
  const spellings = [
    'functions.ReadFile',
    'read_file',
    'readfile',
    'READ-FILE',
    'ReadFile:0',
    'ReadFile()',
    '`ReadFile`',
  ];
  for (const name of [...spellings, 'ReadFile<|channel|>commentary', 'functions.ReadFile:12', '"read_file"']) {
    const twice = JSON.stringify(JSON.stringify({ path: 'a' }));
    const { results, requests } = await run(answers([call('c1', name, twice)], [say('ok')]));
    t.same(results, ['ReadFile ran'], name);
    t.match(requests[1]?.messages.at(-2), { toolCalls: [{ name: 'ReadFile', arguments: '{"path":"a"}' }] });
  }
  const two = await run(answers([call('c1', 'read_file')], [say('ok')]), {
    tools: () => [look, tool({ name: 'Read_File' })],
  });
  t.match(two.results, [/there is no tool read_file/], 'an ambiguous name is refused');
});

t.test('the events of usage have the fields of the turn', async (t) => {
  const usage: ModelEvent = {
    ...{ type: 'usage', inputTokens: 10, outputTokens: 5 },
    ...{ cachedInputTokens: 4, reasoningTokens: 2, costUsd: 0.01 },
  };
  const { ear } = await run(answers([say('Hi.'), usage]));
  const [event] = ear.events.filter(({ method }) => method === 'item/usage/delta');
  t.match(event, {
    params: { usage: { totalTokens: 15, cachedInputTokens: 4, reasoningTokens: 2, costUsd: 0.01 } },
  });
});

t.test('text that turns out to be a thought becomes one, and is not sent back', async (t) => {
  const provider = answers(
    [say('secret plan'), { type: 'textWasThinking' }, say('The answer is 4.'), call('c1', 'ReadFile')],
    [say('ok')],
  );
  const { turn, requests } = await run(provider);
  t.match(turn.items.slice(1, 3), [
    { type: 'reasoningContent', text: 'secret plan' },
    { type: 'agentMessage', text: 'The answer is 4.' },
  ]);
  t.notMatch(JSON.stringify(requests[1]), 'secret plan');
});

t.test('a turn that exceeds its budget of text, arguments, calls or items fails with a reason', async (t) => {
  const { turnTextBytes, answerCalls } = defaults.agent;
  const floods: Readonly<Record<string, () => Generator<ModelEvent>>> = {
    'bytes of text': function* () {
      for (;;) yield say('x'.repeat(turnTextBytes / 16));
    },
    'bytes of arguments': function* () {
      for (;;) {
        const argumentsDelta = 'x'.repeat(1_048_576);
        yield { type: 'toolCallDelta', index: 0, callId: 'c', name: 'ReadFile', argumentsDelta };
      }
    },
    'calls in one answer': function* () {
      for (let index = 0; index <= answerCalls; index += 1) yield call(`c${index}`, 'ReadFile');
    },
  };
  for (const [kind, flood] of Object.entries(floods)) {
    const provider = Object.assign(
      scripted(async function* () {
        yield* flood();
      }),
      { requests: [] },
    );
    const { turn } = await run(provider, { settings });
    t.match(turn, { status: 'failed', error: { code: 'answerTooLong' } }, kind);
    t.match(turn.error?.message, kind);
  }
});
