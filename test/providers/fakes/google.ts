/** Google Gemini (https://ai.google.dev/api/generate-content), with the refusals of the service. */
import { createHash } from 'node:crypto';
import { type Answer, type Dialect, type Received, Refusal } from '../fake.ts';
import { described, inputTokens, type Step, stepOf, thoughtOf } from '../script.ts';

interface Part {
  readonly text?: string;
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: { readonly id?: string; readonly name: string; readonly args: unknown };
  readonly functionResponse?: { readonly id?: string; readonly name: string; readonly response: unknown };
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
}
interface Content {
  readonly role?: string;
  readonly parts: readonly Part[];
}

const refused = (message: string, code = 400, status = 'INVALID_ARGUMENT', details: readonly unknown[] = []): Refusal =>
  new Refusal(code, { error: { code, message, status, ...(details.length > 0 && { details }) } });

const signatureOf = (text: string): string => createHash('sha256').update(`signed ${text}`).digest('base64');
const skip = 'skip_thought_signature_validator';
const models = ['gemini-3.8-flash', 'gemini-2.5-flash'];

export function googleFake(): Dialect {
  const signatures = new Set<string>();
  return {
    name: 'google',
    basePath: '/v1beta',
    models,
    keys: [{ header: 'x-goog-api-key', prefix: '' }],
    isQuestion: (path) => /^\/models\/[^/:]+:(streamGenerateContent|generateContent)$/.test(path),
    list: () => ({
      models: models.map((id) => ({
        name: `models/${id}`,
        displayName: id,
        inputTokenLimit: 1_048_576,
        outputTokenLimit: 65_536,
        supportedGenerationMethods: ['generateContent', 'countTokens'],
      })),
    }),
    wrongKey: () =>
      refused('API key not valid. Please pass a valid API key.', 400, 'INVALID_ARGUMENT', [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' },
      ]),
    answer(received) {
      check(received, signatures);
      return respond(received, signatures);
    },
  };
}

const modelOf = ({ path }: Received): string => /\/models\/([^/:]+):/.exec(path)?.[1] ?? '';

function check(received: Received, signatures: ReadonlySet<string>): void {
  const { body } = received;
  const model = modelOf(received);
  if (!models.includes(model)) throw refused(`models/${model} is not found for API version v1beta`, 404, 'NOT_FOUND');
  const config = (body['generationConfig'] ?? {}) as { thinkingConfig?: Record<string, unknown> };
  const { thinkingLevel, thinkingBudget } = config.thinkingConfig ?? {};
  if (thinkingLevel !== undefined && thinkingBudget !== undefined)
    throw refused('You can only set one of thinking budget and thinking level.');
  if (model.startsWith('gemini-2.5') && thinkingLevel !== undefined)
    throw refused('Thinking level is not supported for this model.');
  for (const group of (body['tools'] ?? []) as { functionDeclarations?: { parameters?: object }[] }[]) {
    for (const { parameters } of group.functionDeclarations ?? []) {
      if (parameters && JSON.stringify(parameters).includes('additionalProperties')) {
        throw refused(
          'Invalid JSON payload received. Unknown name "additionalProperties" at \'tools[0]\': Cannot find field.',
        );
      }
    }
  }
  const contents = body['contents'] as readonly Content[];
  const turn = lastPerson(contents);
  for (const [index, content] of contents.entries()) {
    const calls = content.parts.filter(({ functionCall }) => functionCall);
    if (calls.length === 0) continue;
    const responses = (contents[index + 1]?.parts ?? []).filter(({ functionResponse }) => functionResponse);
    if (responses.length !== calls.length) {
      throw refused(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
    }
    for (const { functionResponse } of responses) {
      if (typeof functionResponse?.response !== 'object')
        throw refused('Invalid value at function_response.response: not an object');
    }
    if (index <= turn || !model.startsWith('gemini-3')) continue;
    const [first] = calls;
    const signature = first?.thoughtSignature;
    if (signature === undefined) {
      throw refused(
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Function call \`${first?.functionCall?.name}\`, position ${index}.`,
      );
    }
    if (signature !== skip && !signatures.has(signature)) throw refused('Thought signature is not valid');
  }
}

/** Index of the last content of a person. */
const lastPerson = (contents: readonly Content[]): number =>
  contents.findLastIndex(
    ({ role, parts }) => role !== 'model' && parts.some(({ text, inlineData }) => text ?? inlineData),
  );

function respond(received: Received, signatures: Set<string>): Answer {
  const { body, bytes, path } = received;
  const contents = body['contents'] as readonly Content[];
  const step = stepOf(situationOf(contents, body));
  const seed = createHash('sha256').update(JSON.stringify(contents)).digest('hex').slice(0, 12);
  const { parts, finishReason } = spoken(step, seed, signatures);
  const total = inputTokens(bytes);
  const usageMetadata = {
    promptTokenCount: total,
    cachedContentTokenCount: Math.floor(total / 4),
    candidatesTokenCount: 12,
    thoughtsTokenCount: 8,
    totalTokenCount: total + 20,
  };
  const base = { modelVersion: modelOf(received), responseId: `resp-${seed}` };
  const candidate = (some: readonly Part[], reason?: string) => ({
    content: { role: 'model', parts: some },
    index: 0,
    ...(reason !== undefined && { finishReason: reason }),
  });
  if (step.does === 'filter') {
    const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata, ...base };
    return path.includes('streamGenerateContent') ? { frames: [frame(blocked)] } : { status: 200, json: blocked };
  }
  if (!path.includes('streamGenerateContent')) {
    return { status: 200, json: { candidates: [candidate(parts, finishReason)], usageMetadata, ...base } };
  }
  return {
    frames: [
      ...parts.map((part) => frame({ candidates: [candidate([part])], usageMetadata, ...base })),
      frame({ candidates: [candidate([{ text: '' }], finishReason)], usageMetadata, ...base }),
    ],
  };
}

const frame = (chunk: unknown): string => `data: ${JSON.stringify(chunk)}\r\n\r\n`;

function spoken(step: Step, seed: string, signatures: Set<string>): { parts: readonly Part[]; finishReason: string } {
  switch (step.does) {
    case 'call': {
      const signature = signatureOf(seed);
      signatures.add(signature);
      const thought: Part = { text: thoughtOf(step.round), thought: true };
      const calls = step.keys.map(
        (key, place): Part => ({
          functionCall: { name: 'lookup', args: { key } },
          ...(place === 0 && { thoughtSignature: signature }),
        }),
      );
      return { parts: [thought, ...calls], finishReason: 'STOP' };
    }
    case 'refuse':
      return { parts: [{ text: 'I cannot' }], finishReason: 'SAFETY' };
    case 'runOut':
      return { parts: [{ text: 'This text is cut' }], finishReason: 'MAX_TOKENS' };
    case 'filter':
      return { parts: [], finishReason: 'SAFETY' };
    case 'say': {
      const half = Math.ceil(step.text.length / 2);
      return { parts: [{ text: step.text.slice(0, half) }, { text: step.text.slice(half) }], finishReason: 'STOP' };
    }
  }
}

function situationOf(contents: readonly Content[], body: Received['body']) {
  const last = lastPerson(contents);
  const later = contents.slice(last + 1);
  const config = (body['generationConfig'] ?? {}) as Readonly<Record<string, unknown>>;
  return {
    text: (contents[last]?.parts ?? []).map(({ text }) => text ?? '').join(' '),
    rounds: later.filter(({ role }) => role === 'model').length,
    results: later.flatMap(({ parts }) =>
      parts.flatMap(({ functionResponse }) => (functionResponse ? [wordsIn(functionResponse.response)] : [])),
    ),
    pictures: (contents[last]?.parts ?? []).flatMap(({ inlineData }) =>
      inlineData ? [described(inlineData.mimeType, inlineData.data)] : [],
    ),
    wantsJson: config['responseMimeType'] === 'application/json',
  };
}

/** The text of a response object, under any name that a client uses. */
const wordsIn = (response: unknown): string =>
  Object.values(response as Record<string, unknown>)
    .filter((value) => typeof value === 'string' && value.startsWith('value of'))
    .join('');
