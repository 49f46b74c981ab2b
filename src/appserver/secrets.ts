import { type Config, secretsIn } from '../config/index.ts';
import type { LaunchDocument } from '../protocol/index.ts';

/**
 * Secrets that must not reach a log, tool, trace or prompt.
 *
 * @param tokens of the WebSocket and the dashboard, and the generated key
 */
export function secretsOf(config: Config, launch: LaunchDocument | undefined, tokens: readonly string[]): string[] {
  return [
    ...tokens,
    ...secretsIn(config),
    launch?.notificationToken ?? '',
    launch?.adoptionProof ?? '',
    launch?.upstream?.apiKey ?? '',
  ].filter((secret) => secret !== '');
}
