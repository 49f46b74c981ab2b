import { messageOf } from '../../lib/index.ts';
import { defaults } from '../../protocol/index.ts';
import { ModelError } from '../model.ts';
import type { ProviderSettings } from './settings.ts';

const { apiKeyCommandMs, apiKeyChars } = defaults.upstream;

/**
 * The key of a provider: as set, or as its command prints it. The command runs without a shell, in the environment of this
 * process; it is no program of a workspace unless its path is given.
 * @throws ModelError upstreamUnauthorized when the command fails or prints no key
 */
export async function apiKeyOf({ apiKey, apiKeyCommand }: ProviderSettings): Promise<string> {
  const [program, ...args] = apiKeyCommand;
  if (apiKey !== '' || program === undefined) return apiKey;
  const { outsideEnvironment, runProgram } = await import('../../supervise/index.ts');
  let output = '';
  const stdout = (chunk: Buffer) => {
    if (output.length <= apiKeyChars) output += chunk.toString('utf8');
  };
  const env = outsideEnvironment(undefined, process.env);
  const end = await runProgram({ program, args, env, timeoutMs: apiKeyCommandMs, stdout }).catch((error: unknown) => {
    throw refusal(program, messageOf(error));
  });
  if (end.cause === 'timedOut') throw refusal(program, `it did not end within ${apiKeyCommandMs} ms`);
  if (end.exitCode !== 0) throw refusal(program, `it ended with ${end.exitCode ?? end.signal}`);
  const key = output.trim();
  if (key === '' || /\s/.test(key) || key.length > apiKeyChars) throw refusal(program, 'it printed no key');
  return key;
}

const refusal = (program: string, reason: string): ModelError =>
  new ModelError('upstreamUnauthorized', `ApiKeyCommand failed: ${reason}. Run ${program} by hand to see why.`);
