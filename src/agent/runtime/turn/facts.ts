import * as v from 'valibot';
import type { SavedTurn } from '../../../../machines/index.ts';
import { messageOf } from '../../../lib/index.ts';
import { approvalPolicies, InputPart, type Turn, turnModes, version } from '../../../protocol/index.ts';
import { PastRecord } from '../past-steps.ts';
import type { TurnOptions } from '../types.ts';
import { Rules } from './rules.ts';

/** Version of the shape below. A row of the previous version is read with defaults; a row of any other version is refused. */
export const factsVersion = 1;
const readableVersions = [factsVersion - 1, factsVersion];
/** Options that may be long and never change: they are saved once. */
const requestOptions = ['history', 'instructions', 'clientTools', 'responseFormat'] as const;
const withoutRequest: TurnOptions = Object.fromEntries(requestOptions.map((name) => [name, undefined]));
/** Longest row, which each step writes again. A turn with a longer row ends with its process. */
const maxFactsChars = 65_536;

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const cost = v.nullable(v.number());

/** Everything that a turn counts and decides, except the facts that the next process has itself. */
const Context = v.object({
  patience: v.object({
    seed: v.number(),
    compactions: count,
    omissions: count,
    failedRequests: count,
    retryMs: v.number(),
    fallbacks: count,
    heldUp: count,
    emptyAnswers: count,
    corrections: count,
    cutAnswers: count,
    hasCalled: v.boolean(),
    quotaWaits: v.optional(count, 0),
    quotaWaitedMs: v.optional(v.number(), 0),
    quotaUntil: v.optional(v.number(), 0),
    quotaAnswer: v.optional(v.nullable(v.picklist(['accepted', 'refused'])), null),
  }),
  requests: count,
  rounds: count,
  tokens: v.object({
    inputTokens: v.number(),
    outputTokens: v.number(),
    cachedInputTokens: v.number(),
    reasoningTokens: v.number(),
    costUsd: cost,
  }),
  clientCalls: count,
  usedUpBudget: v.nullable(v.string()),
  finish: v.picklist(['stop', 'length', 'toolCalls', 'contentFilter']),
  interruptedBy: v.nullable(v.picklist(['user', 'shutdown', 'approval'])),
  failure: v.nullable(
    v.looseObject({
      code: v.string(),
      message: v.string(),
      isRetryable: v.boolean(),
      retryAfterMs: v.optional(v.number()),
      resetMs: v.optional(v.number()),
    }),
  ),
  outcome: v.nullable(v.picklist(['completed', 'failed', 'cancelled'])),
});

export const suspensions = ['restart', 'stop', 'upgrade'] as const;
/** Reason for which an agent server hands its turns over. */
export type Suspension = (typeof suspensions)[number];

/** Facts from which the next process continues with a turn. */
const Facts = v.object({
  version: v.picklist(readableVersions),
  state: v.string(),
  context: v.nullable(Context),
  /** Options of the caller that need no connection to it. */
  options: v.looseObject({
    model: v.optional(v.string()),
    approvalPolicy: v.optional(v.picklist(approvalPolicies)),
    mode: v.optional(v.picklist(turnModes)),
    approvalTimeoutMs: v.optional(v.number()),
    hasDynamicTools: v.optional(v.boolean()),
  }),
  /** Absent: an earlier version wrote the row. */
  rules: v.optional(Rules),
  /** Input of users that waits for the next request. */
  steered: v.array(v.array(InputPart)),
  /** Words for the model that are not items, since the last answer. */
  notes: v.array(v.string()),
  /** Times that the turn continued without a finished step in between. */
  resumes: count,
  /** Time in which no agent server lived, in milliseconds. */
  awayMs: v.number(),
  savedAt: v.pipe(v.string(), v.isoTimestamp()),
  /** Boot of the machine; absent: unknown. */
  bootId: v.optional(v.string()),
  /** Latest transitions, for the inspector. Absent or damaged: none are shown. */
  past: v.fallback(v.optional(PastRecord), undefined),
  /** Present: the agent server handed the turn over. */
  suspended: v.optional(v.picklist(suspensions)),
});

export interface TurnFacts extends Omit<v.InferOutput<typeof Facts>, keyof SavedTurn | 'options'>, SavedTurn {
  readonly options: TurnOptions;
}

/** A turn that an earlier process began. */
export interface ResumedTurn {
  /** The stored turn, with completed items. */
  readonly turn: Turn;
  readonly facts: TurnFacts;
  /** Last known moment of the earlier process, and time of this start, in milliseconds since the epoch. */
  readonly endedAt: number;
  readonly at: number;
  /** Reason for the end of the earlier process. */
  readonly reason: Suspension | 'crash' | 'reboot';
  /** Time without an agent server, in milliseconds: all pauses of the turn, and the last one. */
  readonly awayMs: number;
  readonly lastAwayMs: number;
}

/** Writes facts as JSON; undefined: they are too long to be saved with each step. */
export function textOfFacts(facts: Omit<TurnFacts, 'version'>): string | undefined {
  const { alsoStore: _, beforeEffects: __, toolResults: ___, ...all } = facts.options;
  const options: TurnOptions = { ...all, ...withoutRequest };
  const text = JSON.stringify({ ...facts, version: factsVersion, program: version, options });
  return text.length > maxFactsChars ? undefined : text;
}

/** Writes the long options of a turn as JSON; undefined: it has none. */
export function textOfRequest(options: TurnOptions): string | undefined {
  const given = requestOptions.filter((name) => options[name] !== undefined);
  return given.length === 0
    ? undefined
    : JSON.stringify(Object.fromEntries(given.map((name) => [name, options[name]])));
}

/**
 * @param request long options of the turn; undefined: it has none
 * @throws Error if the facts are unreadable; the message is for users
 */
export function factsOf(text: string, request?: string): TurnFacts {
  const json = parsed(text);
  const { version: found, program } = (json ?? {}) as { readonly version?: unknown; readonly program?: unknown };
  if (!readableVersions.some((each) => each === found)) {
    throw new Error(
      `its saved state has version ${String(found)} (Oratorio ${String(program)}), and this program reads version ${factsVersion} (Oratorio ${version})`,
    );
  }
  const { success, output, issues } = v.safeParse(Facts, json);
  if (success) {
    const facts = output as TurnFacts;
    if (request === undefined) return facts;
    return { ...facts, options: { ...facts.options, ...(parsed(request) as TurnOptions) } };
  }
  const [issue] = issues;
  throw new Error(`its saved state has no valid ${v.getDotPath(issue) ?? 'content'}: ${issue.message}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`its saved state is not JSON: ${messageOf(error)}`);
  }
}
