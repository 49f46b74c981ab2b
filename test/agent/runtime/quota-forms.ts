/** Refusals by a limit, in the words of each provider and agent. */
import { DelegateError } from '../../../src/agent/index.ts';
import { agentLimit, refusedFault } from '../../../src/agent/providers/upstream/errors.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

type Fields = Readonly<Record<string, unknown>>;

/** Refusal by a limit, in the words of one provider or agent. */
export interface Form {
  /** Headers and error of a response. @param now time of the provider @param ms time until the reset */
  readonly response?: (now: number, ms: number) => readonly [headers: Readonly<Record<string, string>>, error: Fields];
  /** Message and data of an ACP error. */
  readonly agent?: (now: number, ms: number) => readonly [message: string, data?: Fields];
  /** Time until the reset of a second refusal, at the time of the first reset. Default: an hour. */
  readonly nextMs?: number;
  /** A rate that may be free before its reset: the request is repeated first. */
  readonly isRate?: boolean;
  /** Situations that the form cannot state. */
  readonly without?: readonly ('reset in the past' | 'reset in a year' | 'wrong clock')[];
}

const seconds = (ms: number): string => String(Math.max(0, ms / 1_000));
const epoch = (at: number): number => Math.floor(at / 1_000);
const minuteOf = (at: number): string =>
  new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
const dateOf = (at: number): string =>
  new Date(at).toLocaleString('en-US', { dateStyle: 'medium', timeStyle: 'short' }).replace(/[\u202f]/g, ' ');
/** "18:40", or a date with the time for another day. */
const statedTime = (now: number, ms: number): string => (ms > day ? dateOf(now + ms) : minuteOf(now + ms));
const google = { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'You exceeded your current quota.' };
const violated = (quotaId: string) => ({ violations: [{ quotaId }] });
/** Durations are never negative, and those of a minute or a day have their length. */
const fixed = ['reset in the past', 'reset in a year'] as const;

export const forms: Readonly<Record<string, Form>> = {
  'OpenAI, seconds': { response: (_, ms) => [{ 'retry-after': seconds(ms) }, { message: 'Rate limit reached.' }] },
  'OpenAI, a date': {
    response: (now, ms) => [{ 'retry-after': new Date(now + ms).toUTCString() }, { message: 'Rate limit reached.' }],
  },
  'Anthropic, a window': {
    response: (now, ms) => [
      { 'anthropic-ratelimit-unified-reset': String(epoch(now + ms)) },
      { type: 'rate_limit_error', message: 'This request would exceed your rate limit.' },
    ],
  },
  'Anthropic, tokens': {
    response: (now, ms) => [
      { 'anthropic-ratelimit-tokens-reset': new Date(now + ms).toISOString() },
      { type: 'rate_limit_error', message: 'This request would exceed your rate limit.' },
    ],
    isRate: true,
  },
  'Gemini, a minute': {
    response: (_, ms) => [
      {},
      {
        ...google,
        details: [violated('GenerateRequestsPerMinutePerProject'), { retryDelay: `${seconds(ms)}s` }],
      },
    ],
    without: fixed,
  },
  'Gemini, a day': {
    response: () => [{}, { ...google, details: [violated('GenerateRequestsPerDayPerProject'), { retryDelay: '30s' }] }],
    nextMs: day,
    without: fixed,
  },
  'codex, a subscription': {
    response: (now, ms) => [{}, { type: 'usage_limit_reached', message: 'x', resets_at: epoch(now + ms) }],
  },
  'codex, a window': {
    response: (now, ms) => [
      { 'x-codex-primary-used-percent': '100', 'x-codex-primary-reset-at': String(epoch(now + ms)) },
      { message: 'The usage limit has been reached.' },
    ],
  },
  'Claude, a subscription': {
    response: (now, ms) => [{}, { message: `Claude AI usage limit reached|${epoch(now + ms)}` }],
  },
  OpenRouter: {
    response: (now, ms) => [
      {},
      {
        message: 'Rate limit exceeded: free-models-per-day',
        metadata: { headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(now + ms) } },
      },
    ],
  },
  'a compatible server': { response: (now, ms) => [{}, { message: `try again at ${statedTime(now, ms)}` }] },
  'codex as an agent': {
    agent: (now, ms) => [`You've hit your usage limit. Try again at ${statedTime(now, ms)}.`],
    without: ['wrong clock'],
  },
  'Claude as an agent': {
    agent: (now, ms) => [`Internal error: Claude AI usage limit reached|${epoch(now + ms)}`],
    without: ['wrong clock'],
  },
};

export interface RefusalMoment {
  /** Clock of this machine. */
  readonly now: number;
  /** Clock of the provider. */
  readonly theirs: number;
  /** Time until the reset. */
  readonly ms: number;
}

/** Error of a refused request, as the provider or the agent's connection throws it. */
export function refusalOf({ response, agent }: Form, { now, theirs, ms }: RefusalMoment): Error {
  if (response) {
    const [headers, error] = response(theirs, ms);
    const given = { date: new Date(theirs).toUTCString(), ...headers };
    return refusedFault(429, given, JSON.stringify({ error }), { clean: (words) => words, now });
  }
  const [message, data] = agent?.(theirs, ms) ?? [''];
  const { code = 'upstreamFailed', resetMs } = agentLimit(message, data, now) ?? {};
  return new DelegateError(code, message, resetMs);
}
