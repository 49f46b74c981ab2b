/** The stand-ins for chat completions, proven with OpenAI's own SDK as a client that returns the fields that each service wants. */
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { startFake } from './fake.ts';
import { type ChatRules, chatFake, chatServices } from './fakes/chat.ts';
import { lookUp, toolSchema } from './script.ts';

type Message = Record<string, unknown>;

interface Call {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
  extra_content?: unknown;
}

async function client(t: Test, rules: ChatRules) {
  const fake = await startFake(t, chatFake(rules), { pieceBytes: [19] });
  const sdk = new OpenAI({
    apiKey: fake.apiKey,
    baseURL: fake.endPoint,
    maxRetries: 0,
    ...(rules.keyHeader && { defaultHeaders: { [rules.keyHeader]: fake.apiKey, authorization: null } }),
  });
  const ask = async (messages: readonly Message[], more: Message = {}) => {
    const params = {
      model: rules.models[0],
      messages,
      tools: [{ type: 'function', function: { name: 'lookup', parameters: toolSchema } }],
      ...more,
      stream: true,
    } as unknown as OpenAI.Chat.ChatCompletionCreateParamsStreaming;
    const answer = { text: '', calls: [] as Call[], fields: {} as Record<string, unknown>, finish: '' };
    for await (const { choices } of await sdk.chat.completions.create(params)) {
      const [choice] = choices;
      if (!choice) continue;
      answer.finish = choice.finish_reason ?? answer.finish;
      take(answer, choice.delta as Record<string, unknown>);
    }
    return answer;
  };
  return { ask, sdk };
}

type Answer = { text: string; calls: Call[]; fields: Record<string, unknown>; finish: string };

/** Adds a delta as the services' references say: texts by field, details and calls by index. */
function take(answer: Answer, delta: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(delta)) {
    if (name === 'content') answer.text += String(value ?? '');
    else if (name === 'reasoning_content' || name === 'reasoning') {
      answer.fields[name] = String(answer.fields[name] ?? '') + String(value);
    } else if (name === 'reasoning_details') {
      const [piece] = value as Record<string, unknown>[];
      answer.fields[name] ??= [{}];
      const [known] = answer.fields[name] as Record<string, unknown>[];
      if (known) Object.assign(known, { ...piece, text: String(known['text'] ?? '') + String(piece?.['text'] ?? '') });
    } else if (name === 'tool_calls') {
      for (const piece of value as (Call & { index?: number })[]) {
        const { index = answer.calls.length, function: fn } = piece;
        const { arguments: args } = fn;
        answer.calls[index] ??= {
          ...piece,
          id: piece.id ?? `call_${index}`,
          function: { name: fn.name, arguments: '' },
        };
        const call = answer.calls[index];
        if (call) call.function.arguments += typeof args === 'string' ? args : JSON.stringify(args);
      }
    }
  }
}

/** An answer and the results of its calls, as they go back. */
function back({ text, calls, fields }: Answer, rules: ChatRules): Message[] {
  const kept = rules.thoughtsBack === 'never' ? {} : fields;
  return [
    {
      role: 'assistant',
      content: text || null,
      ...kept,
      tool_calls: calls.map(({ ...call }) => ({ ...call, index: undefined })),
    },
    ...calls.map(({ id, function: fn }) => ({
      role: 'tool',
      tool_call_id: id,
      content: lookUp((JSON.parse(fn.arguments) as { key: string }).key),
    })),
  ];
}

for (const rules of chatServices) {
  t.test(`${rules.name} serves a correct client and refuses others`, async (t) => {
    const { ask, sdk } = await client(t, rules);
    for (const [text, rounds] of [
      ['tool loop 5', 5],
      ['parallel', 1],
    ] as const) {
      const messages: Message[] = [{ role: 'user', content: text }];
      let answer = await ask(messages);
      for (let round = 0; round < rounds; round += 1) {
        messages.push(...back(answer, rules));
        answer = await ask(messages);
      }
      t.match(answer.text, /^Found: value of/, text);
    }
    t.equal((await ask([{ role: 'user', content: 'length' }])).finish, 'length');
    t.equal((await sdk.models.list()).data[0]?.id, rules.models[0]);

    const question = { role: 'user', content: 'tool loop 2' };
    const answer = await ask([question]);
    const [assistant = {}, result = {}] = back(answer, rules);
    await t.rejects(
      ask([question, assistant]),
      { message: /must be followed by tool messages/ },
      'a call without result',
    );
    await t.rejects(ask([question], { model: 'no-such-model' }), { message: /does not exist/ });
    if (rules.thoughtsBack === 'always' || rules.thoughtsBack === 'same') {
      const { reasoning_content: _, reasoning: __, reasoning_details: ___, ...without } = assistant;
      await t.rejects(
        ask([question, without, result]),
        { message: /must be passed back|was changed/ },
        'thoughts left out',
      );
    }
    if (rules.thoughtsBack === 'never') {
      const withThoughts = { ...assistant, reasoning: 'x', reasoning_content: 'x' };
      await t.rejects(ask([question, withThoughts, result]), { message: /is unsupported/ }, 'thoughts given back');
    }
    if (rules.signsCalls) {
      const unsigned = { ...assistant, tool_calls: answer.calls.map(({ extra_content: _, ...call }) => call) };
      await t.rejects(ask([question, unsigned, result]), { message: /missing a thought_signature/ });
    }
    if (rules.callIds === 'nine') {
      const renamed = { ...assistant, tool_calls: answer.calls.map((call) => ({ ...call, id: 'call_too_long' })) };
      const renamedResult = { ...result, tool_call_id: 'call_too_long' };
      await t.rejects(ask([question, renamed, renamedResult]), { message: /length of 9/ });
      await t.rejects(ask([question, assistant, result, question]), { message: /Unexpected role 'user'/ });
    }
    if (rules.refusesToolsOf) await t.rejects(ask([question], { model: 'gpt-5.6-sol' }), { message: /not supported/ });
    if (rules.limitField) {
      const other = rules.limitField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
      await t.rejects(ask([question], { [other]: 100 }), { message: /Unsupported parameter/ });
    }
  });
}
