/** Agents that do the turns of a workspace: names and words, without a schema. */

/** Names that select a preset (`Agent.Name`), and whether the preset makes its agent ask before it acts. */
export const agentApprovals = {
  codex: 'asks',
  claude: 'asks',
  gemini: 'asks',
  opencode: 'asks',
  qwen: 'asks',
  goose: 'asks',
  pi: 'none',
} as const;
export type PresetName = keyof typeof agentApprovals;
export const presetNames = Object.keys(agentApprovals) as readonly PresetName[];

/** `none` for an agent without a preset: nothing shows that it would ask. */
export const approvalsOfAgent = (name: string): 'asks' | 'none' =>
  Object.entries(agentApprovals).find(([known]) => known === name)?.[1] ?? 'none';

interface Named {
  readonly kind: string;
  readonly name: string;
  readonly version: string | null;
  readonly state: string;
  readonly approvals: string;
}

/** `codex 2.6.0`, with its state where that says something: `pi 0.0.34 (busy, does not ask)`. */
export function agentWords({ kind, name, version, state, approvals }: Named): string {
  const notes = [
    ...(kind === 'oratorio' || state === 'ready' ? [] : [state]),
    ...(approvals === 'none' ? ['does not ask'] : []),
  ];
  return `${name}${version === null ? '' : ` ${version}`}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`;
}

/** Limits of an agent of another maker, in sentences for people. Empty for our own agent. */
export function agentLimits({ kind, name, approvals }: Pick<Named, 'kind' | 'name' | 'approvals'>): string[] {
  if (kind === 'oratorio') return [];
  return [
    `${name} cannot be steered: input waits until its turn has ended.`,
    `${name} cannot plan without acting, and does no turn of a read-only conversation.`,
    ...(approvals === 'none' ? [`${name} does not ask before it acts: only checkpoints protect your files.`] : []),
  ];
}
