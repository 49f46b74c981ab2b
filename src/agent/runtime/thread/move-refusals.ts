import { messageOf } from '../../../lib/index.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { RuntimeServices } from '../services.ts';
import type { ThreadRegistry } from './registry.ts';
import type { Turns } from './turns.ts';

export const refused = (detail: string): AgentError => new AgentError('moveRefused', {}, detail);

/** Refusal after an error of the disk, or of a check that names the reason. */
export function unexpected(error: unknown): AgentError {
  const isSystem = error instanceof Error && 'syscall' in error;
  return refused(
    isSystem ? `${messageOf(error)}. Run oratorio doctor on that machine, then try again` : messageOf(error),
  );
}

/** Next step after a step in the wrong order. */
export const again = 'Start the move again: oratorio move';

const shortCommit = (commit: string | null): string => (commit === null ? 'none' : commit.slice(0, 12));

/** Reason and next step when source and target are at different commits. */
export const headWords = (source: string | null, target: string | null): string =>
  source === null
    ? `the workspace has no commit, and the target has ${shortCommit(target)}. Choose a directory without a repository`
    : `the commits differ: ${shortCommit(source)} at the source, ${shortCommit(target)} at the target. Push the commit, and check it out there: git checkout ${source}`;

/** @throws AgentError moveRefused for a conversation that would lose something */
export function requireRest(
  { id, status, config, parentThreadId, isTransient }: StoredThread,
  services: RuntimeServices,
  registry: ThreadRegistry,
  turns: Turns,
): void {
  const { store } = registry.durable;
  const { processes, delegate } = services;
  const running = (processes?.list(id) ?? []).filter(({ state }) => state !== 'ended' && state !== 'failed');
  const [last] = store.turns(id, { limit: 1 });
  const problems: readonly (readonly [boolean, string])[] = [
    [
      registry.isEphemeral(id) || isTransient === true,
      'it belongs to one request and is not stored. Move a conversation of oratorio list',
    ],
    [parentThreadId !== undefined, 'it belongs to a sub-agent. Move the conversation that started it'],
    [status !== 'active', 'it is archived. Restore it on the page first'],
    [turns.runtimeOf(id).waitingOnApproval, 'its turn waits for your answer. Answer first: oratorio inbox'],
    [turns.of(id) !== undefined, 'a turn is running. Wait until the turn ends, or interrupt it'],
    [
      last !== undefined && last.completedAt === undefined,
      'its last turn has not ended. Start its agent server, and wait',
    ],
    [store.queue(id).length > 0, 'inputs are queued. Remove them, or wait until they are done'],
    [running.length > 0, `${running.length} background processes run and cannot move. Stop them first`],
    [
      config?.agent !== undefined || delegate !== undefined || store.agentSession(id) !== undefined,
      'an external agent keeps its session on this machine. Start a conversation there instead',
    ],
    [config?.workspaceOverride !== undefined, 'it works in a worktree of its own. Merge it first: oratorio merge'],
  ];
  const problem = problems.find(([isGiven]) => isGiven);
  if (problem) throw new AgentError('moveRefused', { threadId: id }, `the conversation cannot move: ${problem[1]}`);
  requireQuiet(services, turns);
}

/** @throws AgentError moveRefused for a conversation that already exists here */
export function requireElsewhere(thread: StoredThread | undefined): void {
  if (thread && thread.move?.state !== 'left')
    throw refused(`the target already has a conversation ${thread.id}. Continue that one, or delete it first`);
}

/** @throws AgentError moveRefused while a turn of another conversation changes the files */
export function requireQuiet({ workspacePath }: RuntimeServices, turns: Turns): void {
  const other = turns.running.threadIn(workspacePath);
  if (other !== undefined) throw refused(`a turn of ${other} works in its files. Wait for its end, then try again`);
}
