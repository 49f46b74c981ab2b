/** Shows questions of the agent server in an editor: as an elicitation, or else as permission requests with the options as choices. */
import type {
  AgentContext,
  ClientCapabilities,
  CreateElicitationRequest,
  CreateElicitationResponse,
  PermissionOption,
} from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { visible } from '../lib/index.ts';
import {
  fieldsOf,
  type QuestionAnswer,
  QuestionContent,
  type QuestionField,
  type QuestionForm,
  type QuestionRequest,
} from '../protocol/index.ts';

export interface AskedEditor {
  readonly client: AgentContext;
  readonly capabilities: ClientCapabilities;
  readonly sessionId: string;
  readonly withdrawn: AbortSignal;
}

/** Asks the editor's user. Undefined: this editor cannot show the question, which waits for other clients. */
export async function askQuestion(request: QuestionRequest, editor: AskedEditor): Promise<QuestionAnswer | undefined> {
  const { elicitation } = editor.capabilities;
  const { url } = request.question;
  const mode = url === undefined ? 'form' : 'url';
  if (elicitation?.[mode] !== undefined && elicitation[mode] !== null) return elicit(request, editor);
  return url === undefined ? choose(request, editor) : undefined;
}

const waiting = ({ withdrawn }: AskedEditor) => ({ cancellationSignal: withdrawn, stopWaitingOnCancel: true });

/** Name of the extra field for an answer in the user's own words. */
const ownWords = (name: string): string => `${name} (own words)`;

async function elicit({ requestId, callId, question }: QuestionRequest, editor: AskedEditor): Promise<QuestionAnswer> {
  const { sessionId, client } = editor;
  const { from, message = '', url, schema } = question;
  const about = { sessionId, toolCallId: callId, message: `${from} asks. ${visible(message)}`.trim() };
  const asked: CreateElicitationRequest =
    url === undefined
      ? { ...about, mode: 'form', requestedSchema: schema ?? schemaOf(fieldsOf(question)) }
      : { ...about, mode: 'url', url, elicitationId: requestId };
  const answer: CreateElicitationResponse = await client.request('elicitation/create', asked, waiting(editor));
  if (answer.action !== 'accept') return { action: answer.action === 'decline' ? 'decline' : 'cancel' };
  const content = v.safeParse(QuestionContent, 'content' in answer ? (answer.content ?? {}) : {});
  if (!content.success) return { action: 'cancel' };
  return { action: 'accept', content: schema ? content.output : withOwnWords(question, content.output) };
}

/** Questions of our agent as a form, each with an extra field for free text. */
function schemaOf(fields: readonly QuestionField[]) {
  const entries = fields.flatMap(({ name, description, kind, choices }) => {
    const options = choices.map(({ value, label, description: means }) => ({
      ...{ const: value, title: label },
      ...(means !== undefined && means !== '' && { description: means }),
    }));
    const about = { title: name, description: description ?? name };
    const field =
      kind === 'many'
        ? { ...about, type: 'array' as const, items: { anyOf: options } }
        : { ...about, type: 'string' as const, oneOf: options };
    const other = { type: 'string' as const, title: ownWords(name) };
    return [
      [name, field],
      [ownWords(name), other],
    ] as const;
  });
  return { type: 'object' as const, properties: Object.fromEntries(entries) };
}

function withOwnWords(question: QuestionForm, content: QuestionContent): QuestionContent {
  const answers: Record<string, QuestionContent[string]> = {};
  for (const { name, kind } of fieldsOf(question)) {
    const own = content[ownWords(name)];
    const picked = content[name];
    const isOwn = typeof own === 'string' && own.trim() !== '';
    const other = isOwn ? [own.trim()] : [];
    if (kind === 'many') answers[name] = [...(Array.isArray(picked) ? picked : []), ...other];
    else if (isOwn) answers[name] = own.trim();
    else if (picked !== undefined) answers[name] = picked;
  }
  return answers;
}

const decline: PermissionOption = { optionId: 'decline', name: 'Decline to answer', kind: 'reject_once' };

/** Sends one permission request for each field. An editor without forms shows only fields with choices. */
async function choose(request: QuestionRequest, editor: AskedEditor): Promise<QuestionAnswer | undefined> {
  const fields = fieldsOf(request.question);
  if (fields.some(({ choices }) => choices.length === 0)) return undefined;
  const content: Record<string, QuestionContent[string]> = {};
  for (const { name, title, description = title, kind, choices } of fields) {
    const options = choices.map(
      ({ label }, index): PermissionOption => ({
        ...{ optionId: `choice-${index}`, name: visible(label, { multiline: false }), kind: 'allow_once' },
      }),
    );
    const lines = choices.map(({ label, description: means = '' }) => `│ ${label}${means === '' ? '' : `: ${means}`}`);
    const text = [`${request.question.from} asks:`, `│ ${description}`, ...lines]
      .map((line) => visible(line, { multiline: false, strict: true }))
      .join('\n');
    const { outcome } = await editor.client.request(
      'session/request_permission',
      {
        sessionId: editor.sessionId,
        toolCall: {
          ...{ toolCallId: request.callId, status: 'pending', title: visible(description, { multiline: false }) },
          content: [{ type: 'content', content: { type: 'text', text } }],
        },
        options: [...options, decline],
      },
      waiting(editor),
    );
    if (outcome.outcome === 'cancelled') return { action: 'cancel' };
    const picked = choices[options.findIndex(({ optionId }) => optionId === outcome.optionId)];
    if (!picked) return { action: 'decline' };
    content[name] = kind === 'many' ? [picked.value] : picked.value;
  }
  return { action: 'accept', content };
}
