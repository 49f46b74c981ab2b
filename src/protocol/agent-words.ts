/** Agents that do the turns of a workspace: names and words, without a schema. */

/** Name of our own agent, for a thread of a workspace whose turns another agent does. */
export const ownAgent = 'oratorio';

/** Presets (`Agent.Name`): the program of each, and whether the preset makes it ask before it acts. */
export const agentPresets = {
  codex: { program: 'codex-acp', approvals: 'asks' },
  claude: { program: 'claude-agent-acp', approvals: 'asks' },
  gemini: { program: 'gemini', approvals: 'asks' },
  opencode: { program: 'opencode', approvals: 'asks' },
  qwen: { program: 'qwen', approvals: 'asks' },
  goose: { program: 'goose', approvals: 'asks' },
  pi: { program: 'pi-acp', approvals: 'none' },
} as const;
export type PresetName = keyof typeof agentPresets;
export const presetNames = Object.keys(agentPresets) as readonly PresetName[];

/** `none` for an agent without a preset: nothing shows that it would ask. */
export const approvalsOfAgent = (name: string): 'asks' | 'none' =>
  Object.entries(agentPresets).find(([known]) => known === name)?.[1].approvals ?? 'none';

interface Named {
  readonly kind: string;
  readonly name: string;
  readonly version: string | null;
  readonly state: string;
  readonly approvals: string;
}

/**
 * `codex 2.6.0`, with its state where that says something: `pi 0.0.34 (busy, does not ask)`. An absent program starts with the
 * next turn, like a ready one.
 */
export function agentWords({ kind, name, version, state, approvals }: Named): string {
  const notes = [
    ...(kind === ownAgent || state === 'ready' || state === 'absent' ? [] : [state]),
    ...(approvals === 'none' ? ['does not ask'] : []),
  ];
  return `${name}${version === null ? '' : ` ${version}`}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`;
}

/** Why there are no choices, in a sentence for people. Undefined: there are some, or an agent that runs has none. */
export function missingChoices({ kind, name, state }: Pick<Named, 'kind' | 'name' | 'state'>, choices: number) {
  if (kind === ownAgent || state !== 'absent' || choices > 0) return undefined;
  return `${name} names its models and modes in its first turn.`;
}

/** Limits of an external agent, in sentences for people. Empty for our own agent. */
export function agentLimits({ kind, name, approvals }: Pick<Named, 'kind' | 'name' | 'approvals'>): string[] {
  if (kind === ownAgent) return [];
  return [
    `${name} cannot be steered: input waits until its turn has ended.`,
    `${name} cannot plan without acting, and does no turn of a read-only conversation.`,
    ...(approvals === 'none' ? [`${name} does not ask before it acts: only checkpoints protect your files.`] : []),
  ];
}
