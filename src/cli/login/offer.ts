import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { modelSettingsOf } from '../../agent/index.ts';
import { ConfigError, isDelegated, loadConfig } from '../../config/index.ts';
import { ensurePrivateDirectory, writeFileAtomic } from '../../lib/index.ts';
import { askChoice, canAsk, inputWaits } from '../ask.ts';
import type { CommandContext } from '../command.ts';
import { logIn } from './wizard.ts';

/** File in the home that marks the question as asked: it is asked once. */
const markerOf = (home: string): string => join(home, 'login-offered');

/** Whether a workspace has a model, uses an external agent, or uses the demo. */
function hasModel({ home, env }: CommandContext, workspace: string): boolean {
  try {
    const { config } = loadConfig({ home, workspace, env });
    return isDelegated(config.Agent) || config.Provider === 'demo' || modelSettingsOf(config).main.kind !== 'demo';
  } catch (error) {
    // The next step that needs the settings reports their problem.
    if (error instanceof ConfigError) return true;
    throw error;
  }
}

/**
 * Offers to connect a model, once per home and only on a terminal. Does not ask while input waits, which the question would consume.
 *
 * @returns whether one was connected
 */
export async function offerLogin(context: CommandContext, workspace: string): Promise<boolean> {
  const { home } = context;
  const { output, options } = context;
  if (!canAsk(context) || options['login'] === false) return false;
  if (existsSync(markerOf(home)) || hasModel(context, workspace)) return false;
  if (inputWaits()) {
    output.note(output.colors.dim('No model is connected, so the demo answers. Connect one with: oratorio login'));
    return false;
  }
  const answer = await askChoice('No model is connected. Connect one now?', [
    { value: 'yes', label: 'Yes', hint: 'as oratorio login does' },
    { value: 'no', label: 'Not now', hint: 'the built-in demo answers; connect one later with: oratorio login' },
  ]);
  ensurePrivateDirectory(home);
  writeFileAtomic(markerOf(home), '');
  if (answer === 'no') return false;
  await logIn({ ...context, argument: undefined, options: {} });
  return true;
}
