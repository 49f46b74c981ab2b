/** Options of the lab: reads a command line. */
import { parseArgs } from 'node:util';
import type { Harness } from './harnesses.ts';
import { defaultLimitMs, pickHarnesses, pickTasks } from './lab.ts';
import type { Task } from './task.ts';
import type { Forward } from './upstream.ts';

/** OpenAI-compatible endpoints by provider, with the variable that holds the key. */
export const providers: Readonly<Record<string, { endPoint: string; variable: string }>> = {
  openai: { endPoint: 'https://api.openai.com/v1', variable: 'OPENAI_API_KEY' },
  anthropic: { endPoint: 'https://api.anthropic.com/v1', variable: 'ANTHROPIC_API_KEY' },
  google: { endPoint: 'https://generativelanguage.googleapis.com/v1beta/openai', variable: 'GEMINI_API_KEY' },
  openrouter: { endPoint: 'https://openrouter.ai/api/v1', variable: 'OPENROUTER_API_KEY' },
};

export interface LabCommand {
  readonly what: 'help' | 'list' | 'run';
  readonly tasks: readonly Task[];
  readonly harnesses: readonly Harness[];
  /** Absent: a scripted model. */
  readonly real: Forward | undefined;
  readonly limitMs: number;
  readonly keep: boolean;
  readonly json: boolean;
}

interface RealModel {
  readonly provider?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly model?: string | undefined;
}

const names = (list: string): string[] => list.split(',').filter((name) => name !== '');

/** @throws when a real model is asked for incompletely */
function realModel({ provider, endpoint, model }: RealModel, env: NodeJS.ProcessEnv): Forward | undefined {
  if (provider === undefined && endpoint === undefined) {
    if (model !== undefined) throw new Error('--model needs --provider or --endpoint.');
    return undefined;
  }
  if (model === undefined) throw new Error('A real model needs --model.');
  const known = endpoint === undefined ? providers[provider ?? ''] : { endPoint: endpoint, variable: 'LAB_API_KEY' };
  if (known === undefined)
    throw new Error(`There is no provider ${provider}. Known: ${Object.keys(providers).join(', ')}.`);
  const apiKey = env[known.variable];
  if (apiKey === undefined || apiKey === '') throw new Error(`No key: set ${known.variable}.`);
  return { endPoint: known.endPoint, apiKey, model };
}

/** @throws for an unknown name, with the known ones, and for options that do not fit together */
export function readCommand(args: readonly string[], env: NodeJS.ProcessEnv): LabCommand {
  const { values } = parseArgs({
    args: [...args],
    options: {
      harness: { type: 'string', default: '' },
      task: { type: 'string', default: '' },
      provider: { type: 'string' },
      endpoint: { type: 'string' },
      model: { type: 'string' },
      limit: { type: 'string', default: String(defaultLimitMs / 1000) },
      keep: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const limitMs = Number(values.limit) * 1000;
  if (!(limitMs > 0)) throw new Error(`--limit is a number of seconds, not ${values.limit}.`);
  return {
    what: values.help ? 'help' : values.list ? 'list' : 'run',
    tasks: pickTasks(names(values.task)),
    harnesses: pickHarnesses(names(values.harness)),
    real: realModel(values, env),
    limitMs,
    keep: values.keep,
    json: values.json,
  };
}
