import { ConfigError, handOverMsOf, loadConfig } from '../config/index.ts';
import type { CommandContext } from './command.ts';

/** Time assumed where the settings cannot be read: a server that runs has started with correct ones. */
const assumedMs = 10_000;

/** Milliseconds that agent servers give their turns before they end. */
export function handOverMs({ home, env }: Pick<CommandContext, 'home' | 'env'>, workspace?: string): number {
  try {
    return handOverMsOf(loadConfig({ home, env, ...(workspace !== undefined && { workspace }) }).config);
  } catch (error) {
    if (error instanceof ConfigError) return assumedMs;
    throw error;
  }
}
