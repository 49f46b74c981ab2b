import { shellWord } from '../../../../lib/browser.ts';

/** Most attempts of one race. */
export const maxAttempts = 8;

/** Choices of the person for a race. */
export interface RaceChoices {
  readonly prompt: string;
  readonly check: string;
  readonly attempts: number;
  /** Names separated by commas, used in turn; empty: the choice of the workspace. */
  readonly models: string;
  readonly efforts: string;
  readonly agents: string;
  /** Whether tools run without approval. */
  readonly isUnattended: boolean;
}

/** Command that runs a race; null while a choice is missing. */
export function raceCommand(choices: RaceChoices, workspacePath: string): string | null {
  const { prompt, check, attempts, isUnattended } = choices;
  if (prompt.trim() === '' || check.trim() === '') return null;
  if (!Number.isSafeInteger(attempts) || attempts < 1 || attempts > maxAttempts) return null;
  const lists = [
    ['--agent', listOf(choices.agents)],
    ['--model', listOf(choices.models)],
    ['--effort', listOf(choices.efforts)],
  ].flatMap(([name = '', list = '']) => (list === '' ? [] : [name, list]));
  const words = [
    ...['oratorio', 'race', '--workspace', workspacePath, '--attempts', String(attempts), '--check', check.trim()],
    ...lists,
    ...(isUnattended ? ['--yes'] : []),
    // A prompt may begin like an option.
    ...['--', prompt.trim()],
  ];
  return words.map(shellWord).join(' ');
}

const listOf = (text: string): string =>
  text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .join(',');
