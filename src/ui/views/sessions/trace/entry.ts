import { dollars } from '../../../../lib/browser.ts';
import { cutText, placeInWords, placeOf } from '../../../../protocol/browser.ts';
import type { EventSummary } from '../../../../protocol/index.ts';
import { span } from '../words.ts';

/** Part of an event that the page stores: enough to draw and to search it. The whole is fetched on demand. */
export interface TraceEntry {
  readonly id: number;
  /** Type of the event: one of `traceTypes`, or a newer one that this page does not know. */
  readonly type: string;
  /** Milliseconds since the epoch. For a segment or a result: its end. */
  readonly at: number;
  readonly turnId: string | undefined;
  readonly callId: string | undefined;
  readonly tool: string | undefined;
  readonly durationMs: number | undefined;
  /** Text of the event in one piece, at most `textChars` long. */
  readonly text: string;
  /** Whether `text` is shortened. */
  readonly isShortened: boolean;
  /** End of the turn, or the decision: the one word that some types have. */
  readonly status: string | undefined;
  /** Tokens of `tokens.used`. */
  readonly tokens: number;
  /** Cost of `tokens.used` in US dollars; 0: unknown or free. */
  readonly costUsd: number;
  /** Model of a request. */
  readonly model: string | undefined;
  /** Whether a rule decided the approval without asking the user. */
  readonly isByRule: boolean;
}

export const textChars = 200;

/** @param event as the server sends it in a list or on the stream */
export function entryOf(event: EventSummary): TraceEntry {
  const { id, type, turnId, callId, tool, durationMs, data } = event;
  const text = textOf(type, data);
  return {
    id,
    type,
    at: Date.parse(event.at),
    turnId,
    callId,
    tool,
    durationMs,
    text: text.length > textChars ? `${cutText(text, textChars)}…` : text,
    isShortened: event.isShortened === true || text.length > textChars,
    status: word(data['status']) ?? word(data['decision']) ?? word(data['outcome']),
    tokens: type === 'tokens.used' ? number(data['inputTokens']) + number(data['outputTokens']) : 0,
    costUsd: type === 'tokens.used' ? number(data['costUsd']) : 0,
    model: word(data['model']),
    isByRule: data['decidedBy'] === 'policy',
  };
}

/** Whether an event reports a failure. */
export const isFailed = ({ type, status }: Pick<TraceEntry, 'type' | 'status'>): boolean =>
  type === 'error' || type.endsWith('.failed') || (type === 'turn.completed' && status === 'failed');

type Data = Readonly<Record<string, unknown>>;

/** Text of an event; for an unknown type, its data as JSON. */
export function textOf(type: string, data: Data): string {
  const known = texts[type];
  return known ? known(data) : Object.keys(data).length === 0 ? '' : JSON.stringify(data);
}

const words = (data: Data, ...names: readonly string[]): string =>
  names.flatMap((name) => word(data[name]) ?? []).join(' · ');

const texts: Readonly<Record<string, (data: Data) => string>> = {
  'session.started': (data) => words(data, 'displayName', 'channelName'),
  'session.completed': (data) => words(data, 'reason'),
  'turn.started': (data) => words(data, 'text', 'input'),
  'turn.resumed': (data) => words(data, 'reason'),
  'turn.suspended': (data) => words(data, 'reason'),
  'turn.completed': (data) => words(data, 'status', 'finishReason'),
  thinking: (data) => words(data, 'text'),
  response: (data) => words(data, 'text'),
  'tool.started': (data) => words(data, 'arguments'),
  'tool.completed': (data) => words(data, 'result'),
  'tool.failed': (data) => words(data, 'result', 'error'),
  'approval.requested': (data) => Object.values(data).flatMap(listed).join(' · '),
  'approval.completed': (data) =>
    [
      word(data['decision']),
      data['decidedBy'] === undefined ? undefined : `by ${String(data['decidedBy'])}`,
      data['client'] === undefined ? undefined : placeInWords(placeOf(String(data['client']))),
    ]
      .filter((each) => each !== undefined)
      .join(' '),
  'tokens.used': usageText,
  'model.failed': (data) =>
    [words(data, 'code', 'text'), retriesText(data), words(data, 'requestId')].filter(isSaid).join(' · '),
  'model.replaced': (data) => `continued with ${String(data['model'])}`,
  'context.compacted': (data) => `${number(data['tokensBefore'])} → ${number(data['tokensAfter'])} tokens`,
  error: (data) => words(data, 'code', 'text'),
};

/** Facts of one answered request, the most important first. */
function usageText(data: Data): string {
  const counted = (name: string, unit: string) => (number(data[name]) > 0 ? `${number(data[name])} ${unit}` : '');
  return [
    `${number(data['inputTokens'])} in`,
    `${number(data['outputTokens'])} out`,
    counted('cachedInputTokens', 'cached'),
    counted('reasoningTokens', 'reasoning'),
    number(data['costUsd']) > 0 ? dollars(number(data['costUsd'])) : '',
    number(data['firstTokenMs']) > 0 ? `first token after ${span(number(data['firstTokenMs']))}` : '',
    retriesText(data),
    words(data, 'finishReason', 'purpose', 'requestId'),
  ]
    .filter(isSaid)
    .join(' · ');
}

function retriesText(data: Data): string {
  const retries = number(data['retries']);
  return retries === 0 ? '' : retries === 1 ? '1 retry' : `${retries} retries`;
}

const isSaid = (text: string): boolean => text !== '';

const word = (value: unknown): string | undefined =>
  value === undefined || value === null || value === '' ? undefined : typeof value === 'string' ? value : spell(value);
const spell = (value: unknown): string => JSON.stringify(value) ?? '';
const listed = (value: unknown): string[] => [word(value) ?? ''].filter((each) => each !== '');
const number = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
