import type { Config, LoadedConfig } from '../../config/index.ts';
import { maskedAddress } from '../../lib/index.ts';
import { defaults } from '../../protocol/index.ts';
import { ModelError } from '../model.ts';
import { printedCall } from '../printed-call.ts';
import { type ModelRouter, modelSettingsOf, modelSource } from '../providers/index.ts';

/** Outcome of one request to a model. */
export type LiveTest =
  | {
      readonly ok: true;
      readonly model: string;
      readonly firstTokenMs: number;
      readonly answer: string;
      /** Use of the offered tool: called, printed as text, or not used. */
      readonly toolCalls: 'called' | 'printed' | 'none';
    }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly hint: string };

/** Loads the configured providers, does `work` with them, and closes their connections. */
export async function withModels<T>(
  config: Config,
  home: string,
  work: (models: ModelRouter) => Promise<T>,
  layers: LoadedConfig['layers'] = [],
): Promise<T> {
  const models = await modelSource(modelSettingsOf(config, undefined, layers), { home })();
  try {
    return await work(models);
  } finally {
    models.close();
  }
}

const question = 'Call the tool report_ready with {"ready": true}\nIf you have no tools, reply: ready';

/** Tool of the test request: a model that cannot call tools is of no use to an agent. */
const readyTool = {
  name: 'report_ready',
  description: 'Reports that you are ready.',
  inputSchema: { type: 'object', properties: { ready: { type: 'boolean' } }, required: ['ready'] },
} as const;

/** Configuration of the model to test. Without layers, a refused key is named without its file. */
export type TestedConfig = Pick<LoadedConfig, 'config'> & Partial<Pick<LoadedConfig, 'layers'>>;

/** Sends one small request, with one tool to call. A failure is returned with its next step. @throws the reason of `signal` */
export async function liveTest(
  { config, layers }: TestedConfig,
  { home, signal }: { readonly home: string; readonly signal: AbortSignal },
): Promise<LiveTest> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(defaults.cli.liveTestMs)]);
  const ask = async (models: ModelRouter): Promise<LiveTest> => {
    const began = performance.now();
    let firstTokenMs: number | undefined;
    let answer = '';
    let calls = 0;
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: question }] }];
    await models
      .stream(
        { messages, tools: [readyTool] },
        (event) => {
          firstTokenMs ??= Math.round(performance.now() - began);
          if (event.type === 'text') answer += event.text;
          else if (event.type === 'textWasThinking') answer = '';
          else if (event.type === 'toolCall') calls += 1;
        },
        limit,
      )
      .catch(async (error: unknown) => {
        throw await withNearestModels(error, models, config, limit);
      });
    const isPrinted = calls === 0 && printedCall(answer, [readyTool.name]) !== undefined;
    return {
      ...{ ok: true, model: models.model, firstTokenMs: firstTokenMs ?? 0, answer: answer.trim() },
      toolCalls: calls > 0 ? 'called' : isPrinted ? 'printed' : 'none',
    };
  };
  try {
    return await withModels(config, home, ask, layers);
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, ...explained(error, config) };
  }
}

/** A refused model, with the names that the provider lists nearest to it. */
class UnknownModel extends Error {
  readonly nearest: readonly string[];

  constructor(cause: ModelError, nearest: readonly string[]) {
    super(cause.message, { cause });
    this.nearest = nearest;
  }
}

async function withNearestModels(
  error: unknown,
  models: ModelRouter,
  config: Config,
  signal: AbortSignal,
): Promise<unknown> {
  const isModel = error instanceof ModelError && error.code === 'upstreamRejected' && /model/i.test(error.message);
  if (!isModel) return error;
  try {
    const names = (await models.listModels(signal)).map(({ id }) => id);
    return names.length === 0 ? error : new UnknownModel(error, nearestNames(config.Model, names));
  } catch {
    // The error of the request is more informative than the error of the list.
    return error;
  }
}

/** The three names with the most pairs of letters in common. */
export function nearestNames(wanted: string, names: readonly string[]): readonly string[] {
  const pairs = (word: string) =>
    new Set(Array.from({ length: word.length - 1 }, (_, index) => word.slice(index, index + 2)));
  const own = pairs(wanted.toLowerCase());
  const likeness = (name: string) => {
    const others = pairs(name.toLowerCase());
    const common = [...own].filter((pair) => others.has(pair)).length;
    return common / Math.max(1, own.size + others.size);
  };
  return names.toSorted((a, b) => likeness(b) - likeness(a)).slice(0, 3);
}

function explained(error: unknown, config: Config): { code: string; message: string; hint: string } {
  const endPoint = maskedAddress(config.EndPoint) || 'the provider';
  if (error instanceof UnknownModel) {
    return {
      code: 'unknownModel',
      message: `${config.Model || 'The default model'} is refused: ${error.message}`,
      hint: `The provider lists: ${error.nearest.join(', ')}. Choose one with --model, or see: oratorio model list`,
    };
  }
  if (!(error instanceof ModelError)) {
    const isTimeout = error instanceof Error && error.name === 'TimeoutError';
    if (!isTimeout) throw error;
    return {
      code: 'upstreamUnreachable',
      message: `${endPoint} did not answer within ${defaults.cli.liveTestMs / 1_000} s.`,
      hint: 'A local server may be loading its model: try again in a minute.',
    };
  }
  return { code: error.code, message: error.message, hint: hintFor(error, endPoint) };
}

function hintFor({ code, message }: ModelError, endPoint: string): string {
  switch (code) {
    case 'upstreamUnauthorized':
      return 'The key was refused: check that it is complete, not revoked, and for this provider.';
    case 'upstreamQuotaExceeded':
      return 'The account has no credit or quota left: add credit on the page of the provider, or log in to another one.';
    case 'upstreamRateLimited':
      return 'The provider limits requests: wait a minute, then try again.';
    case 'upstreamUnreachable':
      return /ECONNREFUSED/.test(message)
        ? 'Nothing listens there: start the server, or check host and port of the end point.'
        : 'Check the host name of the end point and your connection.';
    case 'upstreamRejected':
      return /404/.test(message)
        ? `Nothing is served at this path. Check the end point ${endPoint}: most end in /v1, Google's in /v1beta.`
        : 'The provider refuses the request: its message says why.';
    case 'upstreamProtocol':
      return `${endPoint} does not answer as this kind of provider does: check the URL (most end in /v1) and the kind.`;
    default:
      return 'The provider failed: try again in a minute.';
  }
}
