/**
 * Telemetry of each agent: variables that have it export its requests to a model, and attributes of a request. From the agents'
 * documentation and the exports of their packages.
 */
import { join } from 'node:path';
import type { DelegatedRequest } from '../../agent/index.ts';
import { readBoundedFile } from '../../lib/index.ts';
import type { PresetName } from '../presets.ts';
import type { ExportedRecord, Signal } from './otlp.ts';

export interface Dialect {
  /** Variables for its process. @param address of the receiver, without a slash at its end */
  readonly variables: (address: string) => Readonly<Record<string, string>>;
  /** Variables by which a user has the agent export elsewhere. */
  readonly own: RegExp;
  /** Settings files in the home or the workspace by which a user may have it export elsewhere; variables would win over them. */
  readonly settings: readonly string[];
  readonly signal: Signal;
  /** Names of the records of requests to a model. */
  readonly events: readonly string[];
  /** Names of attributes. */
  readonly session: string;
  readonly model: string;
  readonly durationMs: string;
  /** Attributes whose sum is the number, cached tokens and thoughts included. */
  readonly input: readonly string[];
  readonly output: readonly string[];
  readonly cached: string;
  readonly reasoning: string;
  readonly costUsd?: string;
}

const gemini: Omit<Dialect, 'variables'> = {
  own: /^(OTEL_EXPORTER_|GEMINI_TELEMETRY_)/,
  settings: ['.gemini/settings.json'],
  signal: 'logs',
  events: ['gemini_cli.api_response'],
  session: 'session.id',
  model: 'model',
  durationMs: 'duration_ms',
  input: ['input_token_count', 'tool_token_count'],
  output: ['output_token_count', 'thoughts_token_count'],
  cached: 'cached_content_token_count',
  reasoning: 'thoughts_token_count',
};

export const dialects: Readonly<Partial<Record<PresetName, Dialect>>> = {
  claude: {
    variables: (address) => ({
      CLAUDE_CODE_ENABLE_TELEMETRY: '1',
      OTEL_LOGS_EXPORTER: 'otlp',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_ENDPOINT: address,
      OTEL_LOGS_EXPORT_INTERVAL: '500',
      OTEL_LOG_USER_PROMPTS: '0',
      OTEL_LOG_TOOL_DETAILS: '0',
    }),
    own: /^(OTEL_|CLAUDE_CODE_ENABLE_TELEMETRY$)/,
    // The variables in the agent's settings win over those of its process.
    settings: [],
    signal: 'logs',
    events: ['api_request', 'claude_code.api_request'],
    session: 'session.id',
    model: 'model',
    durationMs: 'duration_ms',
    input: ['input_tokens', 'cache_read_tokens', 'cache_creation_tokens'],
    output: ['output_tokens'],
    cached: 'cache_read_tokens',
    reasoning: 'reasoning_tokens',
    costUsd: 'cost_usd',
  },
  gemini: {
    ...gemini,
    variables: (address) => ({
      GEMINI_TELEMETRY_ENABLED: 'true',
      GEMINI_TELEMETRY_TARGET: 'local',
      GEMINI_TELEMETRY_OTLP_PROTOCOL: 'http',
      GEMINI_TELEMETRY_OTLP_ENDPOINT: address,
      GEMINI_TELEMETRY_LOG_PROMPTS: 'false',
      GEMINI_TELEMETRY_TRACES_ENABLED: 'false',
    }),
  },
  qwen: {
    ...gemini,
    variables: (address) => ({
      QWEN_TELEMETRY_ENABLED: 'true',
      QWEN_TELEMETRY_TARGET: 'local',
      QWEN_TELEMETRY_OTLP_PROTOCOL: 'http',
      QWEN_TELEMETRY_OTLP_ENDPOINT: address,
      QWEN_TELEMETRY_LOG_PROMPTS: 'false',
      QWEN_TELEMETRY_INCLUDE_SENSITIVE_SPAN_ATTRIBUTES: 'false',
    }),
    own: /^(OTEL_EXPORTER_|QWEN_TELEMETRY_)/,
    settings: ['.qwen/settings.json'],
    events: ['qwen-code.api_response'],
    input: ['input_token_count'],
    // Thoughts are counted with the answer.
    output: ['output_token_count'],
  },
};

/** Whether a user has the agent export elsewhere, or has switched its export off. */
export function exportsElsewhere(
  { own, settings }: Pick<Dialect, 'own' | 'settings'>,
  env: Readonly<Record<string, string>>,
  directories: readonly string[],
): boolean {
  if (Object.keys(env).some((name) => own.test(name))) return true;
  return directories.some((directory) => settings.some((file) => namesTelemetry(join(directory, file))));
}

/** Whether a settings file names telemetry; true also for a file that cannot be read. */
function namesTelemetry(file: string): boolean {
  try {
    return /"telemetry"\s*:/.test(readBoundedFile(file, { owner: 'any', links: 'follow' }) ?? '');
  } catch {
    return true;
  }
}

const maxNumber = 1e9;
const modelChars = 200;

/** The request to the model that a record reports; undefined: it reports something else. */
export function requestOf(dialect: Dialect, record: ExportedRecord, now: number): DelegatedRequest | undefined {
  if (!dialect.events.includes(record.name)) return undefined;
  const { attributes } = record;
  const number = (name: string): number => numberIn(attributes.get(name));
  const sum = (names: readonly string[]): number =>
    Math.min(
      maxNumber,
      names.reduce((all, name) => all + number(name), 0),
    );
  const model = attributes.get(dialect.model);
  const isPriced = dialect.costUsd !== undefined && attributes.has(dialect.costUsd);
  return {
    model: typeof model === 'string' ? model.slice(0, modelChars) : undefined,
    endedAt: Math.min(record.endedAt ?? now, now),
    durationMs: record.durationMs ?? Math.round(number(dialect.durationMs)),
    inputTokens: Math.round(sum(dialect.input)),
    outputTokens: Math.round(sum(dialect.output)),
    cachedInputTokens: Math.round(number(dialect.cached)),
    reasoningTokens: Math.round(number(dialect.reasoning)),
    ...(isPriced && { costUsd: number(dialect.costUsd ?? '') }),
  };
}

/** Some agents export numbers as texts. */
function numberIn(value: string | number | boolean | undefined): number {
  const number = typeof value === 'boolean' || value === '' ? 0 : Number(value ?? 0);
  return Number.isFinite(number) ? Math.min(maxNumber, Math.max(0, number)) : 0;
}

export const sessionOf = (dialect: Dialect, { attributes }: ExportedRecord): string | undefined => {
  const id = attributes.get(dialect.session);
  return typeof id === 'string' ? id : undefined;
};
